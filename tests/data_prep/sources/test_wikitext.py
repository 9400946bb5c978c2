"""Wikitext becomes the prose that a reader of the article sees; expectations by hand."""

import pytest

from data_prep.sources import wikitext
from tests.data_prep.reading import page, read

CASES = {
    "'''Ada''' was ''the'' '''''first'''''.": ["Ada was the first."],
    "The [[capital city|capital]] of [[France]]s, [[:Category:Cities]].": [
        "The capital of Frances, Category:Cities."],
    "[[File:a.jpg|thumb|A [[cat|big cat]] {{x|[[y]]}}]]Text.": ["Text."],
    "[[Image:a.jpg|left]] [[ category : B]][[Category:C|sort]]One.": ["One."],
    "[[fr:Paris]] [[zh-min-nan:Pa-lí]] Text.": ["Text."],
    "{{Infobox|a={{b|c}}|d=[[e]]}}\nText {{cite|{{x}}}}{{{1|default}}}here.": ["Text here."],
    'One.<ref name="a">See {{cite}} [[b]].</ref><ref name=b /> Two.<references/>': ["One. Two."],
    "'''Ada''' ({{IPA|x}}; {{lang|y}}) is.": ["Ada is."],
    "Ada ({{IPA|x}}; born 1815) is {{y}}, she.": ["Ada (born 1815) is, she."],
    # What inline templates show belongs to the sentence.
    "At {{convert|1300|mi|km}}, {{Cvt| 3 |-|5.5| ft |abbr=on}} or {{unité|12|km}}, {{cvt|2}}.": [
        "At 1300 mi, 3 - 5.5 ft or 12 km, 2."],
    "{{formatnum:-10}}&nbsp;°C, {{FORMATNUM: 1,234.5|R}}, {{formatnum:{{x}}}}.": [
        "-10 °C, 1,234.5,."],
    "A {{lang|fr|[[château]]{{x}}}} in {{nowrap|1=New York}}, {{w|a|{{Nobr|c}}}} {{w|d}}{{w:e}}.":
        ["A château in New York, c d."],
    'Before.\n{| class="x"\n|-\n| a || {{b}}\n{|\n| nested\n|}\n| c\n|}\nAfter.': [
        "Before.", "After."],
    "Text.\n{| class=x\n| a\n|-\nMore.": ["Text.", "More."],  # A table without an end.
    "* one\n** two ''it''\n# three\n: four\n; term : meaning": [
        "one", "two it", "three", "four", "term meaning"],
    "== Life ==\nText.\n=== ''Work'' ===\nMore.": ["Text.", "More."],
    "[http://a.b A title] [http://c] http://d.e end": ["A title end"],
    "One<!-- two\nlines --> line.": ["One line."],
    "__NOTOC__\nText.__FORCETOC__": ["Text."],
    "If <math>x_1</math>, then <syntaxhighlight lang=c>\nint x;\n</syntaxhighlight> so.": [
        "If, then so."],
    "A <span style='x'>red</span> H<sub>2</sub>O<br />next <div>block</div>": [
        "A red H2O", "next", "block"],
    "<nowiki>[[not]] ''x'' &amp;</nowiki> a": ["[[not]] ''x'' & a"],
    "A&nbsp;&amp; B &lt;b&gt; &#8212; &eacute;&#xD800; c": ["A & B <b> — é c"],
    "One [[two {{three\n'''four\n<ref>five": ["One two three", "four", "five"],
    "{{a}}\n\n* \n----\n—\n|}\n": [],
    "__notoc__ __init__ __index__ a__B__ ＿＿目次非表示＿＿ c_d": ["__init__ __index__ a c_d"],
    "": [],
}
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
PAGES = {
    "de": ("Datei Kategorie", "[[Bild:W.jpg|mini|hochkant|Der Dom]]'''Wien''' ist eine [[Stadt]].\n"
           "[[Datei:W2.jpg|miniatur|x]]\n__KEIN_INHALTSVERZEICHNIS__ [[Kategorie:Ort]]\n"
           "[[:Kategorie:Ort]]", ["Wien ist eine Stadt.", "Kategorie:Ort"]),
    "fr": ("Fichier Catégorie", "[[Image:P.jpg|vignette|La tour]]'''Paris''' est une [[ville]].\n"
           "[[Média:a.ogg|écouter]] __AUCUNSOMMAIRE__ [[Catégorie:Ville]]",
           ["Paris est une ville."]),
    "ru": ("Файл Категория", "[[Изображение:М.jpg|мини|Вид]]'''Москва''' — [[город|столица]].\n"
           "__БЕЗ_ОГЛАВЛЕНИЯ__ [[Категория:Города]]", ["Москва — столица."]),
    "zh": ("File Category", "[[文件:B.png|缩略图|图二]][[圖像:C.png|縮圖|图三]]"
           "'''北京'''（{{lang-en|Beijing}}）是"
           "-{zh-tw:首都;zh-cn:京城}-。-{H|zh-cn:a;zh-tw:b}-\n__无目录__ [[分类:城市]]",
           ["北京是京城。"]),
    "ja": ("ファイル Category", "[[画像:T.jpg|サムネイル|右|眺め]]'''東京'''は[[首都]]。\n"
           "__目次非表示__ [[カテゴリ:都市]] [[Category:東京]]", ["東京は首都。"]),
    "hi": ("चित्र श्रेणी", "[[चित्र:D.jpg|अंगूठाकार|दृश्य]]'''दिल्ली''' [[राजधानी]] है।\n"
           "__विषय_सूची_हीन__ [[श्रेणी:शहर]]", ["दिल्ली राजधानी है।"]),
    "sr": ("Датотека Категорија", "[[Слика:B.jpg|мини|Поглед]][[Slika:C.jpg|mini|x]]'''-{"
           "sr-el:Beograd; sr-ec:Београд}-''' је [[главни град]].\n"
           "__БЕЗСАДРЖАЈА__ [[Kategorija:Gradovi]]",
           ["Београд је главни град."]),
    "tr": ("Dosya Kategori", "[[Resim:A.jpg|küçükresim|Manzara]]'''Ankara''' [[başkent]]tir.\n"
           "__İÇİNDEKİLERYOK__ [[Kategori:Kent]]", ["Ankara başkenttir."]),
    "yo": ("Fáìlì Ẹ̀ka", "[[Fáìlì:A.jpg|x]][[Àwòrán:B.PNG|thumb|y]]'''Èkó''' ni ìlú.",
           ["Èkó ni ìlú."]),
}
"""Language -> its siteinfo's names of files and categories, an article, and its lines."""


def write_dump(path, language, names, text):
    namespaces = "".join(f'<namespace key="{key}" case="first-letter">{name}</namespace>'
                         for key, name in zip((6, 14), names.split(), strict=True))
    path.write_text(f'<mediawiki xml:lang="{language}"><siteinfo><namespaces>{namespaces}'
                    f"</namespaces></siteinfo>\n{page('T', text)}</mediawiki>\n", "utf-8")


def test_wikitext_becomes_prose():
    assert {text: wikitext.prose(text) for text in CASES} == CASES
    assert wikitext.prose("== Life ==\nA.\n=== ''Work'' ===\nB.", headings=True) == [
        "Life", "A.", "Work", "B."]
    text = "[[Datei:a.jpg|mini|Ein Bild]]Text."
    assert wikitext.prose(text, namespaces=["Datei"]) == ["Text."]


@pytest.mark.parametrize("mark", ["[[", "{{", "<div>", "<ref>", "{|\n", "''", "[http://a "])
def test_marks_a_thousand_deep_are_read(mark):
    lines = wikitext.prose("Before.\n\n" + mark * 1000)
    assert lines[:1] in (["Before."], [])


@pytest.mark.parametrize("language", PAGES)
def test_an_article_has_no_markup_in(language, tmp_path):
    files, text, lines = PAGES[language]
    write_dump(tmp_path / "a.xml", language, files, text)
    assert read(f"wikipedia:{tmp_path}/a.xml") == [lines]


def test_one_language_variant_is_kept_in_wikis_that_have_them(tmp_path):
    assert {text: wikitext.one_variant(text) for text in VARIANTS} == VARIANTS
    for language in ("en", "zh"):
        write_dump(tmp_path / f"{language}.xml", language, "File Category", "A -{x}- B.")
    assert read(f"wikipedia:{tmp_path}/*.xml") == [["A -{x}- B."], ["A x B."]]
