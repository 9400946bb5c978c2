"""The page on which a model can be tried."""

import html
import pathlib
import urllib.parse
from collections.abc import Sequence

_PAGE = pathlib.Path(__file__).with_name("page.html").read_text(encoding="utf-8")
# The page has its style and script inside; nothing is loaded, and nothing but this server asked.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
                               "script-src 'unsafe-inline'; connect-src 'self'; img-src data:; "
                               "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache"}


def of(name: str, names: Sequence[str]) -> str:
    """Returns the page of one model, with the way to the others."""
    others = "".join(
        f'<a href="/?model={html.escape(urllib.parse.quote(each))}">{html.escape(each)}</a> '
        for each in names if each != name)
    return _PAGE.replace("{{others}}", others).replace("{{model_name}}", html.escape(name))
