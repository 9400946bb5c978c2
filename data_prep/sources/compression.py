"""Compressed files as streams, read to their very end: what follows a damaged part isn't dropped.

Python's `bz2` and `lzma` modules end quietly where a second stream of a file is damaged, and
zstandard's reader where a file is cut short. Here both are errors.
"""

import bz2
import gzip
import io
import lzma
import typing
import zlib
from collections.abc import Callable

from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path

CORRUPT = (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error)
"""What reading raises if a file is damaged; and `OSError` without `errno`."""
_STORED = 1 << 16
"""Compressed bytes read at once."""
_STORED_ZSTD = 1 << 12
"""Compressed bytes read at once of .zst files; they decompress to 128 MB at most."""
_BUFFER = 1 << 17


def opened(raw: typing.BinaryIO, name: str) -> typing.BinaryIO:
    """Returns the content of an open file, decompressed if its name ends with .gz, .bz2, .xz or
    .zst.
    """
    suffix = name[name.rfind("."):]
    if suffix == ".gz":
        return gzip.open(raw)
    opener = _DECOMPRESSORS.get(suffix)
    if opener is None:
        return raw
    return io.BufferedReader(_Unpacked(raw, opener, suffix == ".zst"), _BUFFER)


def is_damage(error: Exception) -> bool:
    """Tells the error of a damaged file from one of the operating system."""
    return isinstance(error, CORRUPT) or (isinstance(error, OSError) and error.errno is None)


def cannot_read(path: Path, error: OSError) -> UserError:
    """Returns what to say of a file that the operating system doesn't let us read."""
    return UserError(f"cannot read {path}: {error.strerror}.")


class _Zstd:
    """zstandard's decompressor with the interface of Python's own."""

    needs_input = True

    def __init__(self):
        import zstandard  # Here, because few files need it.
        self._error = zstandard.ZstdError
        self._frame = zstandard.ZstdDecompressor().decompressobj()

    def decompress(self, content: bytes, _most: int) -> bytes:
        try:
            return self._frame.decompress(content)
        except self._error as error:
            raise lzma.LZMAError(str(error)) from error

    @property
    def eof(self) -> bool:
        return self._frame.eof

    @property
    def unused_data(self) -> bytes:
        return self._frame.unused_data


_DECOMPRESSORS: dict[str, Callable] = {
    ".bz2": bz2.BZ2Decompressor, ".xz": lzma.LZMADecompressor, ".zst": _Zstd}


class _Unpacked(io.RawIOBase):
    """The streams of a compressed file, one after another."""

    def __init__(self, raw: typing.BinaryIO, decompressor: Callable, bounded: bool):
        super().__init__()
        self._raw, self._new = raw, decompressor
        self._at_once = _STORED_ZSTD if bounded else _STORED
        self._stream: typing.Any = None
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        while not self._ready:
            if not self._advance(len(buffer)):
                return 0
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def _advance(self, most: int) -> bool:
        """Unpacks some more; returns whether there was anything left."""
        stored = b""
        if self._stream is None or self._stream.eof:
            stored = b"" if self._stream is None else self._stream.unused_data
            while not (stored := stored.lstrip(b"\0")):  # Padding, of .xz and of tapes.
                if not (stored := self._raw.read(self._at_once)):
                    return False
            self._stream = self._new()
        elif self._stream.needs_input and not (stored := self._raw.read(self._at_once)):
            raise EOFError("the file ends within a compressed stream")
        self._ready = memoryview(self._stream.decompress(stored, most))
        return True
