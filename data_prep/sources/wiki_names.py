"""Holds names of MediaWiki's translations that dumps do not contain.

The <siteinfo> of a dump names each namespace once, without its other names: a German dump names
"Datei" and its pages also write "Bild:". Names and words are those of MediaWiki 1.39
(languages/messages/Messages*.php, with the aliases of each language's fallbacks), for 15 large
Wikipedias also those of 1.46. Short names such as "CAT" are in Wikimedia's settings
(wmf-config/core-Namespaces.php). English names are valid in every wiki.
"""

NAMESPACES = {
    "ar": "ملف صورة وسائط ميديا تصنيف", "arz": "ملف صورة وسائط ميديا تصنيف",
    "bg": "Файл Картинка Медия Категория", "bn": "চিত্র মিডিয়া বিষয়শ্রেণী",
    "bs": "Datoteka Slika Mediji Medija Kategorija", "ca": "Fitxer Imatge Categoria",
    "cs": "Soubor Obrázok Média Kategorie Kat", "da": "Fil Billede Kategori",
    "de": "Datei Bild Medium Kategorie", "el": "Αρχείο Εικόνα Μέσο Μέσον Κατηγορία",
    "eo": "Dosiero Aŭdvidaĵo Kategorio", "es": "Archivo Imagen Medio Categoría CAT",
    "et": "Fail Pilt Meedia Kategooria", "eu": "Fitxategi Irudi Kategoria",
    "fa": "پرونده تصویر مدیا رسانه رسانه\u200cای رده", "fi": "Tiedosto Kuva Luokka",
    "fr": "Fichier Média Catégorie", "gl": "Ficheiro Arquivo Imaxe Imagem Categoría",
    "he": "קובץ קו תמונה מדיה קטגוריה קט", "hi": "चित्र मीडिया श्रेणी श्र",
    "hr": "Datoteka DT Slika Mediji Kategorija KT CT", "hu": "Fájl Kép Média Kategória",
    "id": "Berkas Gambar Kategori", "it": "File Immagine Categoria CAT",
    "ja": "ファイル 画像 メディア カテゴリ", "ko": "파일 그림 미디어 분류",
    "la": "Fasciculus Imago Categoria", "lt": "Vaizdas Medija Kategorija",
    "ms": "Fail Imej Kategori", "nb": "Fil Bilde Medium Kategori",
    "nl": "Bestand Afbeelding Categorie", "nn": "Fil Bilde Filpeikar Kategori",
    "no": "Fil Bilde Medium Kategori", "pl": "Plik Grafika Kategoria",
    "pt": "Ficheiro Arquivo Imagem Multimédia Categoria CAT",
    "ro": "Fișier Fişier Imagine Categorie", "ru": "Файл Изображение Медиа Категория К",
    "sh": "Datoteka DT Slika Mediji Medija Kategorija KAT KT "
          "Датотека ДТ Слика Медија Категорија КАТ КТ",
    "sk": "Súbor Obrázok Médiá Kategória",
    "sr": "Датотека Слика Фотографија Медиј Медија Категорија "
          "Datoteka Slika Fotografija Medij Medija Kategorija",
    "sv": "Fil Bild Kategori", "th": "ไฟล์ ภาพ สื่อ หมวดหมู่",
    "tr": "Dosya Resim Ortam Medya Kategori KAT",
    "uk": "Файл Зображення Изображение Медіа Медиа Категорія Категория",
    "vi": "Tập_tin Hình Phương_tiện Thể_loại",
    "yue": "文件 檔 檔案 档 档案 圖 圖像 图 图像 媒體 媒体 分類 分类 類 类",
    "zh": "文件 图像 圖像 图片 圖片 档案 檔案 媒体 媒體 媒体文件 媒體文件 媒体档案 媒體檔案 "
          "分类 分類 CAT",
}
NAMESPACES |= dict.fromkeys(("gan", "lzh", "wuu"), NAMESPACES["zh"])  # Their fallback is zh.
"""Language -> names of the namespaces of files, other media and categories."""
REDIRECTS = frozenset(word.lower() for word in """
    REDIRECT WEITERLEITUNG REDIRECTION REDIRECCIÓN REDIRECCION REDIRECCIÓ REDIRECCIO RINVIA RINVIO
    RIMANDO REDIRECIONAMENTO DOORVERWIJZING PATRZ PRZEKIERUJ TAM OMDIRIGERING OMDIRIGER
    ПЕРЕНАПРАВЛЕНИЕ ПЕРЕНАПР ПЕРЕНАПРАВЛЕННЯ пренасочване виж Преусмери Преусмјери PREUSMERI
    PREUSMJERI 転送 リダイレクト 重定向 重新導向 넘겨주기 تحويل अनुप्रेषित पुनर्प्रेषित تغییر_مسیر
    تغییرمسیر הפניה YÖNLENDİRME YÖNLENDİR yönlendirme yönlendir đổi ALIH LENCONG PŘESMĚRUJ
    PRESMERUJ ÁTIRÁNYÍTÁS OHJAUS UUDELLEENOHJAUS suuna PERADRESAVIMAS BIRZUZENDU REDIRECTEAZA
    ΑΝΑΚΑΤΕΥΘΥΝΣΗ ALIDIREKTI ALIDIREKTU AL เปลี่ยนทาง পুনর্নির্দেশ পুনঃর্নির্দেশ পুনঃনির্দেশ
    পুননির্দেশ""".split())
"""Words that begin a page that is a redirect, in the languages of `NAMESPACES`."""
VARIANTS = frozenset("ban crh gan iu kk ku mni sh shi sr tg tly uz wuu zgh zh".split())
"""Languages whose pages have the markup of variants, -{...}-; kk had it in MediaWiki 1.39."""
