"""Wikipedia in its languages: variants, names and redirects; expected text by hand."""

import pytest

from data_prep.sources import wikitext
from tests.data_prep.reading import page, read

PAGES = {
    "de": ("Datei", "[[Bild:W.jpg|mini|hochkant|Der Dom]]'''Wien''' ist eine [[Stadt]].\n"
           "[[Datei:W2.jpg|miniatur|x]]\n__KEIN_INHALTSVERZEICHNIS__ [[Kategorie:Ort]]\n"
           "[[:Kategorie:Ort]]", ["Wien ist eine Stadt.", "Kategorie:Ort"]),
    "fr": ("Fichier", "[[Image:P.jpg|vignette|La tour]]'''Paris''' est une [[ville]].\n"
           "[[Média:a.ogg|écouter]] __AUCUNSOMMAIRE__ [[Catégorie:Ville]]",
           ["Paris est une ville."]),
    "es": ("Archivo", "[[Imagen:M.jpg|miniaturadeimagen|Vista]]'''Madrid''' es la [[capital]].\n"
           "__SIN_TDC__ [[Categoría:Ciudad]]", ["Madrid es la capital."]),
    "ru": ("Файл", "[[Изображение:М.jpg|мини|Вид]]'''Москва''' — [[город|столица]].\n"
           "__БЕЗ_ОГЛАВЛЕНИЯ__ [[Категория:Города]] [[К:Столицы]]", ["Москва — столица."]),
    "zh": ("File", "[[文件:B.png|缩略图|图二]][[圖像:C.png|縮圖|图三]]"
           "'''北京'''（{{lang-en|Beijing}}）是"
           "-{zh-tw:首都;zh-cn:京城}-。-{H|zh-cn:a;zh-tw:b}-\n__无目录__ [[分类:城市]]",
           ["北京是京城。"]),
    "ja": ("ファイル", "[[画像:T.jpg|サムネイル|右|眺め]]'''東京'''は[[首都]]。\n"
           "__目次非表示__ [[カテゴリ:都市]] [[Category:東京]]", ["東京は首都。"]),
    "ko": ("파일", "[[그림:S.jpg|섬네일|전경]]'''서울'''은 [[수도]]이다.\n"
           "__목차숨김__ [[분류:도시]]",
           ["서울은 수도이다."]),
    "ar": ("ملف", "[[صورة:C.jpg|تصغير|منظر]]'''القاهرة''' هي [[عاصمة]].\n"
           "__لافهرس__ [[تصنيف:مدن]]",
           ["القاهرة هي عاصمة."]),
    "hi": ("चित्र", "[[चित्र:D.jpg|अंगूठाकार|दृश्य]]'''दिल्ली''' [[राजधानी]] है।\n"
           "__विषय_सूची_हीन__ [[श्रेणी:शहर]]", ["दिल्ली राजधानी है।"]),
    "sr": ("Датотека", "[[Слика:B.jpg|мини|Поглед]][[Slika:C.jpg|mini|x]]'''-{sr-el:Beograd; "
           "sr-ec:Београд}-''' је [[главни град]].\n__БЕЗСАДРЖАЈА__ [[Kategorija:Gradovi]]",
           ["Београд је главни град."]),
    "tr": ("Dosya", "[[Resim:A.jpg|küçükresim|Manzara]]'''Ankara''' [[başkent]]tir.\n"
           "__İÇİNDEKİLERYOK__ [[Kategori:Kent]]", ["Ankara başkenttir."]),
    "yo": ("Fáìlì", "[[Fáìlì:A.jpg|x]][[Àwòrán:B.PNG|thumb|y]]'''Èkó''' ni ìlú.", ["Èkó ni ìlú."]),
}
"""Language -> its siteinfo's name of files, an article, and its lines."""


def write_dump(path, language, files, text, *more):
    header = (f'<mediawiki xml:lang="{language}"><siteinfo><namespaces><namespace key="6" '
              f'case="first-letter">{files}</namespace></namespaces></siteinfo>\n')
    path.write_text(header + page("T", text) + "".join(more) + "</mediawiki>\n", encoding="utf-8")


@pytest.mark.parametrize("language", PAGES)
def test_an_article_has_no_markup_in(language, tmp_path):
    files, text, lines = PAGES[language]
    write_dump(tmp_path / "a.xml", language, files, text)
    assert read(f"wikipedia:{tmp_path}/a.xml") == [lines]


VARIANTS = {
    "-{zh-hans:A;zh-hant:B}-": "A", "-{zh-tw:B;zh-cn:A}-": "A", "-{ZH-TW:B; zh-hk:C;}-": "B",
    "-{sr-el:B; sr-ec:A}-": "A", "-{uz-latn:A;uz-cyrl:B}-": "A", "-{高雄}-": "高雄", "-{}-": "",
    "-{A|zh-hans:A;zh-hant:B}-": "A", "-{H|zh-cn:A}-": "", "-{T|zh:A}-": "", "-{-|zh-cn:A}-": "",
    "-{R|zh-cn:A}-": "zh-cn:A", "-{D|zh-tw:B;zh-cn:A}-": "A", "-{N|zh-cn}-": "",
    "-{zh-hans;zh-hant|A}-": "A", "-{|[[A|B]]}-": "[[A|B]]", "-{[[A|B]]}-": "[[A|B]]",
    "-{巨集=>zh-cn:宏;}-": "宏", "-{zh-tw:B-{C}-;zh-cn:A-{D}-}-": "AD",
    '-{zh-cn:<b style="a:b;c:d">A</b>;zh-tw:B}-': '<b style="a:b;c:d">A</b>',
    "-{zh:{{a}}}- b": "{{a}} b", "-{{a}}-b": "-{{a}}-b", "-{{{a|b}}}-": "{{a|b}}",
    "-{zh-tw:B;zh-cn:A\nC": "A\nC", "A}- B": "A B", "-{zh-cn:A&nbsp;;zh-tw:B}-": "A&nbsp;",
    "<math>e^{-{x}}</math> -{A}-": "<math>e^{-{x}}</math> A",
    "<!-- -{ --><nowiki>-{</nowiki>-{A}-": "<!-- -{ --><nowiki>-{</nowiki>A",
}


def test_one_variant_is_kept():
    assert {text: wikitext.one_variant(text) for text in VARIANTS} == VARIANTS


def test_wikis_without_variants_keep_the_mark(tmp_path):
    for language in ("en", "zh"):
        write_dump(tmp_path / f"{language}.xml", language, "File", "A -{x}- B.")
    assert read(f"wikipedia:{tmp_path}/*.xml") == [["A -{x}- B."], ["A x B."]]


@pytest.mark.parametrize("word", [
    "#WEITERLEITUNG", "#weiterleitung:", "#REDIRECTION ", "#REDIRECCIÓN", "#перенаправление",
    "#重定向", "#転送 ", "#넘겨주기", "#تحويل", "#अनुप्रेषित", "#YÖNLENDİRME", "#yönlendirme",
    "#重新導向", "#Преусмјери", "#تغییر مسیر"])
def test_a_redirect_is_no_article_in_any_language(tmp_path, word):
    write_dump(tmp_path / "a.xml", "xx", "File", f"{word} [[Wien]]", page("B", "#Eins [[Zwei]]"))
    assert read(f"wikipedia:{tmp_path}/a.xml") == [["Eins Zwei"]]


def test_a_switch_is_dropped_and_other_underscores_stay():
    assert wikitext.prose("__notoc__ __init__ __index__ a__B__ ＿＿目次非表示＿＿ c_d") == [
        "__init__ __index__ a c_d"]
