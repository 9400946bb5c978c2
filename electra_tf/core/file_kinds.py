"""Recognizes files that are not text in UTF-8 by their first bytes."""

from electra_tf.core.errors import UserError

HEAD_BYTES = 1 << 12
"""Bytes of a file's beginning that `require_text` needs."""
TO_JSON_LINES = "('FILE').to_json('rows.jsonl', orient='records', lines=True)\"`"
_KINDS = {
    b"PK\x03\x04": "a zip archive or an Office document; unpack it with unzip, or save it as text "
                   "with `python -c \"import pandas; pandas.read_excel('FILE').to_csv('rows.csv', "
                   "index=False)\"`",
    b"\x1f\x8b": "compressed with gzip; let its name end with .gz",
    b"BZh": "compressed with bzip2; decompress it with `bzip2 -dc`",
    b"\xfd7zXZ\0": "compressed with xz; decompress it with `xz -dc`",
    b"\x28\xb5\x2f\xfd": "compressed with zstd; decompress it with `zstd -dc`",
    b"%PDF-": "a PDF; extract its text with pdftotext",
    b"{\\rtf": "RTF; save it as text in UTF-8",
    b"\xd0\xcf\x11\xe0": "an Office document; save it as text in UTF-8",
    b"version https://git-lfs": "a pointer of Git LFS; get the file itself with `git lfs pull`",
    b"PAR1": "Parquet; data_prep reads it with --input='parquet:PATTERN#COLUMN', other programs "
             f"read JSON lines: `python -c \"import pandas; pandas.read_parquet{TO_JSON_LINES}",
    b"ARROW1": "an Arrow file; write JSON lines with "
               f"`python -c \"import pandas; pandas.read_feather{TO_JSON_LINES}",
    b"\xff\xff\xff\xff": "an Arrow stream, as datasets saves; write JSON lines with `python -c \""
                         "import datasets; datasets.Dataset.from_file('FILE').to_json('rows.jsonl')"
                         "\"`",
    **{mark: f"UTF-{bits}; convert it with `iconv -f utf-{bits} -t utf-8`" for mark, bits in (
        (b"\xff\xfe", 16), (b"\xfe\xff", 16), (b"\0\0\xfe\xff", 32), (b"\xff\xfe\0\0", 32))},
}
"""First bytes -> what the file is, and what to do with FILE. The longest match counts."""


def require_text(path: object, head: bytes) -> None:
    """Raises `UserError` unless a file's first `HEAD_BYTES`, decompressed, are those of text."""
    # A known beginning; "BZh" can also begin a text.
    starts = [start for start in _KINDS if head.startswith(start)]
    if head[:3] == b"BZh" and not head[4:10] == b"1AY&SY":
        starts = []
    if starts:
        raise UserError(f"{path} is {_KINDS[max(starts, key=len)].replace('FILE', str(path))}.")
    if head[257:262] == b"ustar":
        raise UserError(f"{path} is a tar archive; unpack it with `tar -xf`.")
    if b"\0" in head:
        # Letters of Latin scripts have a NUL in every other byte of UTF-16: which one tells the
        # order.
        halves = [head[side::2].count(0) / len(head) for side in (0, 1)]
        kind = {True: "utf-16be", False: "utf-16le"}[halves[0] > halves[1]]
        raise UserError(f"{path} looks like UTF-16; convert it with `iconv -f {kind} -t utf-8`."
                        if max(halves) > 0.3 and min(halves) < 0.1 else
                        f"{path} is not text: NUL is at byte {head.index(0)}; name a text file, or "
                        "unpack this one or write its texts as JSON lines.")
