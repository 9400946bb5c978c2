"""Reads plain text: a blank line or the end of a file ends a document.

Memory is bounded for files, documents and lines of any size.
"""

import io
import itertools
import json
import re
import typing
from collections.abc import Iterator

from data_prep.documents import MAX_PART_BYTES, DocumentPart, key_of, parse_plain_text
from data_prep.sources.files import FileSource
from electra_tf.platform.errors import UserError
from electra_tf.platform.file_kinds import require_text
from electra_tf.platform.storage import Path

_FIELD = re.compile(r'(?:^\{|,)\s*"(\w+)"\s*:\s*"')
_MARKUP = re.compile(r'<!doctype|<html|<\?xml|(?:\[\s*)?\{\s*"[^"]*"\s*:')
_WITHOUT_MARKS = r"sed '/^<doc /{N;d;};/^$/d;s/^<\/doc>.*//'"
"""Removes the marks, titles and blank lines of WikiExtractor's articles; a blank line ends each."""
_LONGEST_BLANK = 64
"""Bytes of the longest line that is checked for non-ASCII spaces."""


def text_files(paths: tuple[Path, ...], *, any_markup: bool = False) -> FileSource:
    """Returns the source of plain text files; `any_markup` also takes HTML, JSON and the like."""
    return FileSource(paths, "", split_text, parse_plain_text,
                      require_text if any_markup else require_plain_text)


def require_plain_text(path: str, head: bytes) -> None:
    """Raises `UserError` for a file that begins like another source's, or with markup."""
    require_text(path, head)
    text = head.decode(errors="replace").removeprefix("\ufeff").lstrip()
    start = text[:200].lower()
    field = _json_field(text)
    if text.startswith("<doc id="):
        kind = (f"WikiExtractor's output; extract with --json and read with jsonl:PATTERN, or "
                f"remove its marks: `{_WITHOUT_MARKS} {path} > {path}.documents.txt`")
    elif "<mediawiki" in start:
        kind = f"a dump of a MediaWiki; read it with --input='wikipedia:{path}'"
    elif field:
        kind = f"JSON lines; read them with --input='jsonl:{path}#{field}'"
    elif _MARKUP.match(start):
        kind = f"HTML, XML or JSON; extract its text, or read it as it is: --input='text:{path}'"
    elif "\r" in text.rstrip("\r") and "\n" not in text:
        kind = r"text with CR alone as line ends; convert it with `tr '\r' '\n'`"
    else:
        return
    raise UserError(f"{path} is {kind}.")


def _json_field(text: str) -> str:
    """Returns the field with the longest string of a line that is a JSON object; "" for others."""
    line, line_end, _ = text.partition("\n")
    try:
        fields = json.loads(line) if line.startswith("{") else {}
    except ValueError:  # A line longer than the text is cut.
        fields = dict.fromkeys(_FIELD.findall(line), "") if not line_end else {}
    texts = {name: value for name, value in fields.items() if isinstance(value, str)}
    return "text" if "text" in texts else max(texts, key=lambda name: len(texts[name]), default="")


def split_text(file: typing.BinaryIO, path: str) -> Iterator[DocumentPart]:
    """Yields the documents of a file, which blank lines separate."""
    gathered: list[bytes] = []
    size = offset = key = 0
    begins = True
    for line in itertools.chain(bounded_lines(file), (b"",)):
        blank = is_blank(line)
        if gathered and (blank or size + len(line) > MAX_PART_BYTES):
            content = b"".join(gathered)
            key = key_of(content) if begins else key
            yield DocumentPart(content=content, key=key, begins=begins, ends=blank, path=path,
                               offset=offset - size)
            gathered, size, begins = [], 0, blank
        if not blank:
            gathered.append(line)
            size += len(line)
        offset += len(line)


def parts_of(content: bytes, path: str) -> Iterator[DocumentPart]:
    """Yields the parts of a document, one for most documents and none for a blank one.

    A part ends after a line, otherwise a word, otherwise a character.
    """
    key, begin = key_of(content[:MAX_PART_BYTES]), 0
    while begin < len(content) and (begin or content.strip()):
        part = content[begin:begin + MAX_PART_BYTES]
        if begin + len(part) < len(content):
            part = part[:part.rfind(b"\n") + 1 or part.rfind(b" ") + 1 or _character_start(part)]
        yield DocumentPart(content=part, key=key, begins=not begin, path=path, offset=begin,
                           ends=begin + len(part) == len(content))
        begin += len(part)


def is_blank(line: bytes) -> bool:
    """Returns True for a blank line, or a blank part of a longer one."""
    return not line.strip() or (len(line) < _LONGEST_BLANK and not line.isascii() and not
                                line.decode(errors="replace").removeprefix("\ufeff").strip())


def bounded_lines(file: io.BufferedIOBase) -> Iterator[bytes]:
    """Yields lines with their ends; a line longer than `MAX_PART_BYTES` in parts, cut at spaces."""
    rest = b""
    while part := file.readline(MAX_PART_BYTES - len(rest)):
        part = rest + part
        rest = b""
        if len(part) >= MAX_PART_BYTES and not part.endswith(b"\n"):
            cut = part.rfind(b" ") + 1 or _character_start(part)
            part, rest = part[:cut], part[cut:]
        yield part
    if rest:
        yield rest


def _character_start(part: bytes) -> int:
    """Returns the beginning of the last UTF-8 character of `part`."""
    return max((i for i in range(len(part) - 4, len(part)) if part[i] & 0xC0 != 0x80),
               default=len(part))
