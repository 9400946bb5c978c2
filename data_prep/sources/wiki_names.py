"""Holds names of MediaWiki's translations that dumps do not contain.

The <siteinfo> of a dump names each namespace once, without its other names: a Russian dump names
"Категория" and its pages also write "К:". Names and words are those of MediaWiki 1.39
(languages/messages/Messages*.php, with the aliases of each language's fallbacks), for 15 large
Wikipedias also those of 1.46. Short names such as "CAT" are in Wikimedia's settings
(wmf-config/core-Namespaces.php). English names are valid in every wiki.
"""

_CHINESE = "分类 分類 CAT"
CATEGORIES = {
    "cs": "Kat", "es": "CAT", "gan": _CHINESE, "he": "קט", "hi": "श्र", "hr": "KT CT", "it": "CAT",
    "ja": "カテゴリ", "lzh": _CHINESE, "pt": "CAT", "ru": "К", "sh": "KAT KT Категорија КАТ КТ",
    "sr": "Kategorija", "tr": "KAT", "uk": "Категория", "wuu": _CHINESE, "yue": "分類 分类 類 类",
    "zh": _CHINESE}
"""Language -> other names of the namespace of categories. Files are known by their suffixes."""
REDIRECTS = frozenset(word.lower() for word in """
    REDIRECT WEITERLEITUNG REDIRECTION REDIRECCIÓN REDIRECCION REDIRECCIÓ REDIRECCIO RINVIA RINVIO
    RIMANDO REDIRECIONAMENTO DOORVERWIJZING PATRZ PRZEKIERUJ TAM OMDIRIGERING OMDIRIGER
    ПЕРЕНАПРАВЛЕНИЕ ПЕРЕНАПР ПЕРЕНАПРАВЛЕННЯ пренасочване виж Преусмери Преусмјери PREUSMERI
    PREUSMJERI 転送 リダイレクト 重定向 重新導向 넘겨주기 تحويل अनुप्रेषित पुनर्प्रेषित تغییر_مسیر
    تغییرمسیر הפניה YÖNLENDİRME YÖNLENDİR yönlendirme yönlendir đổi ALIH LENCONG PŘESMĚRUJ
    PRESMERUJ ÁTIRÁNYÍTÁS OHJAUS UUDELLEENOHJAUS suuna PERADRESAVIMAS BIRZUZENDU REDIRECTEAZA
    ΑΝΑΚΑΤΕΥΘΥΝΣΗ ALIDIREKTI ALIDIREKTU AL เปลี่ยนทาง পুনর্নির্দেশ পুনঃর্নির্দেশ পুনঃনির্দেশ
    পুননির্দেশ""".split())
"""Words that begin a page that is a redirect, in the languages of large Wikipedias."""
VARIANTS = frozenset("ban crh gan iu kk ku mni sh shi sr tg tly uz wuu zgh zh".split())
"""Languages whose pages have the markup of variants, -{...}-; kk had it in MediaWiki 1.39."""
