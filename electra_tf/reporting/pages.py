"""HTML pages from Jinja2 templates, which share templates/base.html and load no other file."""

import pathlib
from typing import Any

import jinja2

_SHARED = pathlib.Path(__file__).with_name("templates")
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
                               "script-src 'unsafe-inline'; connect-src 'self'; img-src data:; "
                               "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache"}
"""HTTP headers of a page whose script sends requests only to the page's own server."""


def render(template: pathlib.Path, **values: Any) -> str:
    """Returns a page; the text of `values` is escaped. A missing name raises `UndefinedError`."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([template.parent, _SHARED]), autoescape=True,
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.get_template(template.name).render(values)
