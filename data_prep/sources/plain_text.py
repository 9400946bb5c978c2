"""Reads plain text, with a blank line between documents, and books, one per file.

Memory is bounded for files, documents and lines of any size. Books have the format of BooksCorpus,
or of Project Gutenberg with its lines `*** START OF THE PROJECT GUTENBERG EBOOK ... ***` and
`*** END OF ...`. The reader searches a book's bytes for them; workers join wrapped lines.
"""

import io
import itertools
import json
import re
import statistics
import typing
from collections.abc import Iterator

from data_prep.documents import COMPRESSED, MAX_PART_BYTES, DocumentPart, decoded, key_of
from electra_tf.core.errors import UserError
from electra_tf.core.file_kinds import require_text

_FIELD = re.compile(r'(?:^\{|,)\s*"(\w+)"\s*:\s*"')
_MARKUP = re.compile(
    r'<!doctype|<html|<\?xml|<[a-z][^<>\n]*>\s*[\n<](?=.*</)|(?:\[\s*)?\{\s*"[^"]*"\s*:',
    re.DOTALL)
_OTHER_TEXT = {
    r"\A<doc id=": "WikiExtractor's output; extract with --json and read with jsonl:PATTERN, or "
    "remove its marks and titles with `READ | sed '/^<doc /{N;d;};/^$/d;s/^<\\/doc>.*//'",
    r"\AWARC/1\.": "a crawl in WARC; extract the text of HTML with trafilatura, or write the texts "
    "of a .wet with `READ | tr -d '\\r' | awk '/^WARC\\/1/ {head = 1; print \"\"} "
    "/^WARC-Type:/ {text = /conversion/} head && !NF {head = 0} !head && text && NF'",
    r"(?m)^(\d\d:)?\d\d:\d\d[.,]\d{3} --> ": "subtitles; write their lines with "
    "`READ | tr -d '\\r' | grep -vE -e '-->|^[0-9]*$|^WEBVTT'",
    r"(?m)^# text = ": "CoNLL-U; write its sentences with `READ | sed -n 's/^# text = //p'",
    r"(?m)^<\|endoftext\|>\s*$": "text with <|endoftext|> between documents, where a blank line is "
    "expected; write this with `READ | sed '/^$/d;s/^<|endoftext|>$//'"}
"""Content -> what the file is, and the beginning of a command that writes its text."""
_READ = {".gz": "gzip -dc", ".bz2": "bzip2 -dc", ".xz": "xz -dc", ".zst": "zstd -dc"}
_MAX_BLANK_BYTES = 64  # Longest line that is checked for non-ASCII spaces.
BOOK_FILES = " ".join(f"*.{kind}{packed}" for kind in ("txt", "TXT")
                      for packed in ("", *COMPRESSED))
"""Patterns of the files of books in a directory."""
_MAX_WRAPPED_CHARACTERS = 100  # Files wrap lines at 80 or less.
_SENTENCE_END = re.compile(r"[.!?:;…。！？][\"'”’»)\]_*`\s]*$")
_HEAD_BYTES = 1 << 18  # Part of a file that is searched for the book's beginning.
_BEGINNING = rb"^[ \t]*\*\*\*[ \t]*START OF TH(?:E|IS) PROJECT GUTENBERG (?:EBOOK|ETEXT)"
_START = re.compile(_BEGINNING + rb"[^*]{0,400}\*\*\*.*$", re.IGNORECASE | re.MULTILINE)
"""The pattern spans lines, because a long title continues in the next one."""
_START_OPEN = re.compile(_BEGINNING + rb".*$", re.IGNORECASE | re.MULTILINE)
_FOOTER = re.compile(
    rb"^[ \t]*(?:"
    rb"\*\*\*[ \t]*END OF TH(?:E|IS) PROJECT GUTENBERG"
    rb"|\*\*\*[ \t]*START: FULL LICENSE"
    rb"|\*{0,3}[ \t]*END OF (?:THE |THIS )?PROJECT GUTENBERG(?:'S|\xe2\x80\x99S)?\b)",
    re.IGNORECASE | re.MULTILINE)
_CREDITS = re.compile(
    rb"\s*^[ \t]*(?:Produced by|E-?text prepared by|Transcribed (?:from|by)|"
    rb"This e-?text was (?:produced|prepared|scanned))"
    rb"[^\r\n]*(?:\r?\n[ \t]*[^\s][^\r\n]*)*", re.IGNORECASE | re.MULTILINE)


def require_plain_text(path: str, head: bytes) -> None:
    """Raises `UserError` for a file that begins like another source's, or with markup."""
    require_text(path, head)
    text = head.decode(errors="replace").removeprefix("\ufeff").lstrip()
    # The field with the longest string of a line that is a JSON object.
    line, line_end, _ = text.partition("\n")
    try:
        fields = json.loads(line) if line.startswith("{") else {}
    except ValueError:  # A line longer than the text is cut.
        fields = dict.fromkeys(_FIELD.findall(line), "") if not line_end else {}
    texts = {name: value for name, value in fields.items() if isinstance(value, str)}
    field = "text" if "text" in texts else max(
        texts, key=lambda name: len(texts[name]), default="")
    # What the file is, and the source or the command that reads it.
    as_it_is = f"or read it as it is: --input='text:{path}'"
    if "<mediawiki" in text[:200].lower():
        kind = f"a dump of a MediaWiki; read it with --input='wikipedia:{path}'"
    elif field:
        kind = f"JSON lines; read them with --input='jsonl:{path}#{field}'"
    elif table := re.search(r"\.([ct])sv(\.\w+)?$", path):
        separator = "," if table[1] == "c" else r"\t"
        kind = ("a table; write its rows with `python -c \"import pandas; pandas.read_csv("
                f"'{path}', sep='{separator}').to_json('rows.jsonl', orient='records', lines=True)"
                f"\"`, and read them with --input='jsonl:rows.jsonl#COLUMN', {as_it_is}")
    elif other := next((kind for form, kind in _OTHER_TEXT.items() if re.search(form, text)),
                       _table(text)):
        program = _READ.get(path[path.rfind("."):], "cat")
        kind = f"{other.replace('READ', f'{program} {path}')} > {path}.documents.txt`, {as_it_is}"
    elif _MARKUP.match(text.lower()):
        kind = f"HTML, XML or JSON; extract its text, {as_it_is}"
    elif "\r" in text.rstrip("\r") and "\n" not in text:
        kind = r"text with CR alone as line ends; convert it with `tr '\r' '\n'`"
    else:
        return
    raise UserError(f"{path} is {kind}.")


def _table(text: str) -> str:
    """Describes lines, three or more, that have equally many columns; otherwise returns ""."""
    rows = [line.split("\t") for line in text.split("\n")[:-1] if line.strip()]
    if len(rows) < 3 or {*map(len, rows)} != {max(2, len(rows[0]))} or not all(
            cell.strip() for row in rows for cell in row):
        return ""
    sizes = [sum(map(len, cells)) for cells in zip(*rows, strict=True)]
    return ("a table with tabs; write the column with text, for example with "
            f"`READ | cut -f{1 + sizes.index(max(sizes))}")


def split_text(file: typing.BinaryIO, path: str) -> Iterator[DocumentPart]:
    """Yields the documents of a file, which blank lines separate."""
    gathered: list[bytes] = []
    size = offset = key = 0
    begins = True
    # A blank line or the end of the file ends a document; `MAX_PART_BYTES` end a part of it.
    for line in itertools.chain(bounded_lines(file), (b"",)):
        blank = not line.strip() or (
            len(line) < _MAX_BLANK_BYTES and not line.isascii()
            and not line.decode(errors="replace").removeprefix("\ufeff").strip())
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


def split_book(file: typing.BinaryIO, path: str) -> Iterator[DocumentPart]:
    """Yields a book without Project Gutenberg's header and footer, in parts cut at paragraphs."""
    # The beginning after the header and the credits, which are in the first block.
    blocks = _blocks(file)
    first_block = next(blocks, b"")
    head = first_block[:_HEAD_BYTES]
    offset, key, begins = 0, 0, True
    if mark := _START.search(head) or _START_OPEN.search(head):
        offset = (_CREDITS.match(head, mark.end()) or mark).end()
    for block, following in itertools.pairwise(
            itertools.chain([first_block[offset:]], blocks, [b""])):
        # The book ends at the footer, or with the file.
        footer = _FOOTER.search(block)
        content = block[:footer.start()] if footer else block
        ends = bool(footer) or not following
        if content.strip() or not begins:
            key = key_of(content) if begins else key
            yield DocumentPart(content=content, key=key, begins=begins, ends=ends, path=path,
                               offset=offset)
            begins = False
        if ends:
            break
        offset += len(block)
    for _ in blocks:  # Reading to the end detects damage there.
        pass


def _blocks(file: typing.BinaryIO) -> Iterator[bytes]:
    """Yields a file in blocks of 1 to 3 times `MAX_PART_BYTES`, cut after blank lines if possible.

    A block ends at a line's end, so a mark of one line is in one block. A small rest joins the last
    block.
    """
    block, lines, size = b"", [], 0
    for line in bounded_lines(file):
        lines.append(line)
        size += len(line)
        # One block is held back, to which a small rest can be added.
        if size >= MAX_PART_BYTES and (not line.strip() or size >= 2 * MAX_PART_BYTES):
            if block:
                yield block
            block, lines, size = b"".join(lines), [], 0
    if block or lines:
        yield block + b"".join(lines)


def parse_book(part: DocumentPart) -> Iterator[str]:
    """Returns the paragraphs of a book with wrapped lines, or the lines of another book.

    In BooksCorpus every line is a sentence. Raises `UserError` for bytes that are not UTF-8.
    """
    # Paragraphs are runs of lines that aren't blank.
    groups = itertools.groupby(
        map(str.strip, decoded(part).removeprefix("\ufeff").split("\n")), bool)
    paragraphs = [list(lines) for filled, lines in groups if filled]
    # Lines are wrapped if most of those inside of paragraphs do not end a sentence.
    inner = [line for lines in paragraphs for line in lines[:-1]]
    if (not inner or statistics.median(map(len, inner)) > _MAX_WRAPPED_CHARACTERS
            or sum(bool(_SENTENCE_END.search(line)) for line in inner) >= len(inner) / 2):
        return (line for lines in paragraphs for line in lines)
    return ("".join(line if line.endswith(("—", "-")) else f"{line} " for line in lines).strip()
            for lines in paragraphs)
