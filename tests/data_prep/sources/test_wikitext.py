"""Wikitext becomes the prose that a reader of the article sees; expectations by hand."""

import pytest

from data_prep.sources import wikitext

CASES = {
    "bold and italics": ("'''Ada''' was ''the'' '''''first'''''.", ["Ada was the first."]),
    "links": ("The [[capital city|capital]] of [[France]]s, [[:Category:Cities]].",
              ["The capital of Frances, Category:Cities."]),
    "nested link": ("[[File:a.jpg|thumb|A [[cat|big cat]] {{x|[[y]]}}]]Text.", ["Text."]),
    "image": ("[[Image:a.jpg|left]] [[ category : B]][[Category:C|sort]]One.", ["One."]),
    "other language": ("[[fr:Paris]] [[zh-min-nan:Pa-lí]] Here.", ["Here."]),
    "templates": ("{{Infobox|a={{b|c}}|d=[[e]]}}\nText {{cite|{{x}}}}here.", ["Text here."]),
    "arguments": ("Text {{{1|default}}}here.", ["Text here."]),
    "references": ('One.<ref name="a">See {{cite}} [[b]].</ref><ref name=b /> Two.<references/>',
                   ["One. Two."]),
    "reference groups": ("A.<references><ref name=x>y</ref></references>", ["A."]),
    "empty brackets": ("'''Ada''' ({{IPA|x}}; {{lang|y}}) is.", ["Ada is."]),
    "begun brackets": ("Ada ({{IPA|x}}; born 1815) is {{y}}, she.", ["Ada (born 1815) is, she."]),
    "table": ('Before.\n{| class="x"\n|-\n| a || {{b}}\n{|\n| nested\n|}\n| c\n|}\nAfter.',
              ["Before.", "After."]),
    "table in a template": ("{{a|\n{|\n| b\n|}\n}}\nText.", ["Text."]),
    "table without an end": ("Text.\n{| class=x\n| a\n|-\nMore.", ["Text.", "More."]),
    "list": ("* one\n** two ''it''\n# three\n: four\n; term : meaning",
             ["one", "two it", "three", "four", "term meaning"]),
    "headings": ("== Life ==\nText.\n=== ''Work'' ===\nMore.", ["Text.", "More."]),
    "external links": ("[http://a.b A title] [http://c] http://d.e end", ["A title end"]),
    "comments": ("One<!-- two\nlines --> line.", ["One line."]),
    "switches": ("__NOTOC__\nText.__FORCETOC__", ["Text."]),
    "formulas and code": ("If <math>x_1</math>, then <syntaxhighlight lang=c>\nint x;\n"
                          "</syntaxhighlight> so.", ["If, then so."]),
    "html": ("A <span style='x'>red</span> H<sub>2</sub>O<br />next <div>block</div>",
             ["A red H2O", "next", "block"]),
    "nowiki": ("<nowiki>[[not]] ''x'' &amp;</nowiki> a", ["[[not]] ''x'' & a"]),
    "entities": ("A&nbsp;&amp; B &lt;b&gt; &#8212; &eacute;&#xD800; c",
                 ["A & B <b> — é c"]),
    "marks without an end": ("One [[two {{three\n'''four\n<ref>five", [
        "One two three", "four", "five"]),
    "gallery": ("<gallery>\nFile:a.jpg|One\n</gallery>\nText.", ["Text."]),
    "only marks": ("{{a}}\n\n* \n----\n—\n|}\n", []),
    "nothing": ("", []),
}


def test_articles_become_prose():
    found = {name: wikitext.prose(source) for name, (source, _) in CASES.items()}
    assert found == {name: lines for name, (_, lines) in CASES.items()}
    assert wikitext.prose("== Life ==\nA.\n=== ''Work'' ===\nB.", headings=True) == [
        "Life", "A.", "Work", "B."]
    text = "[[Datei:a.jpg|mini|Ein Bild]]Text."
    assert wikitext.prose(text, namespaces=["Datei"]) == ["Text."]


@pytest.mark.parametrize("mark", ["[[", "{{", "<div>", "<ref>", "{|\n", "''", "[http://a "])
def test_marks_a_thousand_deep_are_read(mark):
    lines = wikitext.prose("Before.\n\n" + mark * 1000)
    assert lines[:1] in (["Before."], [])
