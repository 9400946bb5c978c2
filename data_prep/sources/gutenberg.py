"""What Project Gutenberg puts around a book, found by the marks of all its years.

A newer file (from about 2001) has lines `*** START OF THIS PROJECT GUTENBERG EBOOK ... ***` and
`*** END OF ...`, an older one begins behind the line that ends with `*END*` of its "small print",
and a few have the small print at their end. Most say "End of Project Gutenberg's ..." too.
"""

import re

_HEAD = 1 << 18
"""Bytes of a book in which its beginning is looked for."""
_LEAST = 100
"""Bytes that a book has at least: the small print behind so little was its beginning."""
_BEGINNING = rb"^[ \t]*\*\*\*[ \t]*START OF TH(?:E|IS) PROJECT GUTENBERG (?:EBOOK|ETEXT)"
_START = re.compile(_BEGINNING + rb"[^*]{0,400}\*\*\*.*$", re.IGNORECASE | re.MULTILINE)
"""A long title goes on in the next line."""
_START_OPEN = re.compile(_BEGINNING + rb".*$", re.IGNORECASE | re.MULTILINE)
_SMALL_PRINT_END = re.compile(
    rb"^\*[ \t]*END[ \t]*\*?[ \t]*THE SMALL PRINT!.*$", re.IGNORECASE | re.MULTILINE)
_FOOTER = re.compile(
    rb"^[ \t]*(?:"
    rb"\*\*\*[ \t]*END OF TH(?:E|IS) PROJECT GUTENBERG"
    rb"|\*\*\*[ \t]*START: FULL LICENSE"
    rb"|\*{0,3}[ \t]*END OF (?:THE |THIS )?PROJECT GUTENBERG(?:'S|\xe2\x80\x99S)?\b"
    rb"|\**[ \t]*START\**[ \t]*THE SMALL PRINT!)",
    re.IGNORECASE | re.MULTILINE)
_CREDITS = re.compile(
    rb"\s*^[ \t]*(?:Produced by|E-?text prepared by|Transcribed (?:from|by)|"
    rb"This e-?text was (?:produced|prepared|scanned))"
    rb"[^\r\n]*(?:\r?\n[ \t]*[^\s][^\r\n]*)*", re.IGNORECASE | re.MULTILINE)
_ENCODING = re.compile(rb"^Character set encoding:[ \t]*([A-Za-z0-9 _-]+?)[ \t]*\r?$",
                       re.IGNORECASE | re.MULTILINE)
_ONE_BYTE = frozenset({"iso88591", "latin1", "isolatin1", "windows1252", "cp1252"})


def body_start(head: bytes) -> int:
    """Returns where the book begins in the first bytes of its file: 0 if nothing stands before it.

    Args:
        head: the file's beginning, or all of it.
    """
    head = head[:_HEAD]
    mark = _START.search(head) or _START_OPEN.search(head)
    begin = mark.end() if mark else 0
    for end in _SMALL_PRINT_END.finditer(head, begin):
        behind = head[end.end():]
        footer = _FOOTER.search(behind)
        if len(behind[:footer.start() if footer else None].strip()) >= _LEAST:
            begin = end.end()
    credits = _CREDITS.match(head, begin) if begin else None
    return credits.end() if credits else begin


def body_end(content: bytes, begin: int = 0) -> int:
    """Returns where a footer or a licence begins in bytes of a book; -1 if none does.

    Args:
        content: whole lines of the file.
        begin: where to look from, the start of a line.
    """
    mark = _FOOTER.search(content, begin)
    return mark.start() if mark else -1


def is_one_byte_text(head: bytes) -> bool:
    """Tells whether the header says that a byte is a letter, as in files before about 2010."""
    said = _ENCODING.search(head[:_HEAD])
    return bool(said) and re.sub(r"[ _-]", "", said[1].decode().lower()) in _ONE_BYTE
