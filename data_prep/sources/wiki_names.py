"""Holds names of MediaWiki's translations that dumps do not contain.

The <siteinfo> of a dump names each namespace once, without its other names: a German dump names
"Datei" and its pages also write "Bild:". The names are those of MediaWiki's Messages*.php.
"""

NAMESPACES = {
    "ar": "ملف صورة وسائط ميديا تصنيف", "arz": "ملف صورة وسائط ميديا تصنيف",
    "bg": "Файл Картинка Медия Категория", "bn": "চিত্র মিডিয়া বিষয়শ্রেণী",
    "bs": "Datoteka Slika Mediji Kategorija", "ca": "Fitxer Imatge Categoria",
    "cs": "Soubor Média Kategorie", "da": "Fil Billede Kategori",
    "de": "Datei Bild Medium Kategorie", "el": "Αρχείο Εικόνα Μέσο Κατηγορία",
    "eo": "Dosiero Kategorio", "es": "Archivo Imagen Medio Categoría",
    "et": "Fail Pilt Meedia Kategooria", "eu": "Fitxategi Irudi Kategoria",
    "fa": "پرونده تصویر مدیا رده", "fi": "Tiedosto Kuva Luokka",
    "fr": "Fichier Image Média Catégorie", "gl": "Ficheiro Arquivo Imaxe Categoría",
    "he": "קובץ תמונה מדיה קטגוריה", "hi": "चित्र मीडिया श्रेणी",
    "hr": "Datoteka Slika Mediji Kategorija", "hu": "Fájl Kép Média Kategória",
    "id": "Berkas Gambar Kategori", "it": "File Immagine Categoria",
    "ja": "ファイル 画像 メディア カテゴリ", "ko": "파일 그림 미디어 분류",
    "la": "Fasciculus Imago Categoria", "lt": "Vaizdas Kategorija", "ms": "Fail Imej Kategori",
    "nb": "Fil Bilde Medium Kategori", "nl": "Bestand Afbeelding Categorie",
    "nn": "Fil Bilde Bilete Kategori", "no": "Fil Bilde Medium Kategori",
    "pl": "Plik Grafika Kategoria", "pt": "Ficheiro Arquivo Imagem Multimédia Categoria",
    "ro": "Fișier Fişier Imagine Categorie", "ru": "Файл Изображение Медиа Категория",
    "sh": "Datoteka Slika Mediji Kategorija Датотека Слика Категорија",
    "sk": "Súbor Obrázok Médiá Kategória",
    "sr": "Датотека Слика Медиј Медија Категорија Datoteka Slika Medij Medija Kategorija",
    "sv": "Fil Bild Kategori", "th": "ไฟล์ ภาพ สื่อ หมวดหมู่",
    "tr": "Dosya Resim Medya Kategori",
    "uk": "Файл Зображення Изображение Медіа Категорія Категория",
    "vi": "Tập_tin Hình Phương_tiện Thể_loại", "zh": "文件 图像 圖像 档案 檔案 媒体 媒體 分类 分類",
}
"""Language -> names of the namespaces of files, other media and categories."""
REDIRECTS = frozenset(word.lower() for word in """
    REDIRECT WEITERLEITUNG REDIRECTION REDIRECCIÓN REDIRECCION RINVIA RINVIO REDIRECIONAMENTO
    DOORVERWIJZING PATRZ PRZEKIERUJ TAM OMDIRIGERING ПЕРЕНАПРАВЛЕНИЕ ПЕРЕНАПР ПЕРЕНАПРАВЛЕННЯ
    転送 リダイレクト 重定向 넘겨주기 تحويل अनुप्रेषित تغییر_مسیر تغییرمسیر הפניה YÖNLENDİRME
    YÖNLENDİR đổi ALIH PŘESMĚRUJ ÁTIRÁNYÍTÁS OHJAUS UUDELLEENOHJAUS REDIRECTEAZA Преусмери
    PREUSMERI пренасочване ΑΝΑΚΑΤΕΥΘΥΝΣΗ เปลี่ยนทาง PRESMERUJ REDIRECCIÓ""".split())
"""Words that begin a page that is a redirect."""
VARIANTS = frozenset("ban crh gan iu kk ku mni sh shi sr tg tly uz wuu zgh zh".split())
"""Languages whose pages have the markup of language variants, -{...}-."""
