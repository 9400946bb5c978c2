"""Pages are one file each that loads nothing, and escape what they show."""

import pathlib
import re

import electra_tf
from electra_tf.reporting import pages

TEMPLATES = [*pathlib.Path(pages.__file__).parent.glob("templates/*.html"),
             *pathlib.Path(electra_tf.__file__).parent.glob("apps/*/page.html")]


def test_pages_load_nothing_and_make_no_markup_of_text():
    assert len(TEMPLATES) == 3
    for path in TEMPLATES:
        text = path.read_text(encoding="utf-8")
        assert re.findall(r"(?:(?:src|href)\s*=|url\()\s*[\"']?(?!data:|#)\w", text) == [], path
        assert "innerHTML" not in text and "|safe" not in text.replace(" ", ""), path
