"""Compressed files are read to their end, whatever they are made of, or refused."""

import bz2
import gzip
import io
import lzma
import random
import tracemalloc

import pytest
import zstandard

from data_prep.sources import files
from tests.data_prep.reading import read_skipping

PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress,
           ".zst": zstandard.compress}
TEXT = b"".join(b"line %d\n" % number for number in range(20_000))


def unpacked(content, suffix):
    return files.unpacked(io.BytesIO(content), suffix).read()


@pytest.mark.parametrize("suffix", PACKERS)
def test_one_stream_and_several_read_alike(suffix):
    pack = PACKERS[suffix]
    assert unpacked(pack(TEXT), suffix) == TEXT
    assert unpacked(pack(TEXT[:5]) + pack(b"") + pack(TEXT[5:]), suffix) == TEXT


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_damaged_second_stream_is_an_error(suffix):
    first, second = PACKERS[suffix](TEXT), PACKERS[suffix](TEXT[::-1])
    for content in (first + second[:-12], first + b"\xaa" + second[1:], first + b"garbage"):
        with pytest.raises(files.CORRUPT) as caught:
            unpacked(content, suffix)
        assert getattr(caught.value, "errno", None) is None


@pytest.mark.parametrize("suffix", PACKERS)
def test_documents_before_damage_are_read_and_its_offset_is_named(tmp_path, suffix):
    words = random.Random(1).choices([b"one", b"two", b"three", b"four"], k=150_000)
    text = b"\n\n".join(b" ".join(words[at:at + 10]) for at in range(0, len(words), 10))
    (tmp_path / f"a{suffix}").write_bytes(PACKERS[suffix](text)[:-2000])
    (tmp_path / "b.txt").write_text("whole")
    documents, (message,) = read_skipping(f"{tmp_path}/*")
    assert documents[-1] == ["whole"]
    if len(documents) > 1:
        assert documents[0][0].encode() == b" ".join(words[:10])
    offset = int(message.split("after byte ")[1].split()[0])
    assert text[:offset].count(b"\n\n") == max(0, len(documents) - 2)
    assert f"a{suffix} is corrupt or cut short" in message


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_file_in_another_format_than_its_suffix_says_is_to_be_renamed(tmp_path, suffix):
    for number, content in enumerate((TEXT, *(PACKERS[other](TEXT) for other in PACKERS
                                              if other != suffix))):
        (tmp_path / f"{number}.txt{suffix}").write_bytes(content)
    documents, messages = read_skipping(f"{tmp_path}/*")
    assert not documents and len(messages) == len(PACKERS)
    assert all(message.endswith(f"or rename it if it is no {suffix}.") for message in messages)


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_file_that_grows_a_thousandfold_takes_little_memory(suffix, monkeypatch):
    monkeypatch.setattr(files, "_STORED", 64)
    bomb = io.BytesIO(PACKERS[suffix](bytes(20 << 20)))
    tracemalloc.start()
    try:
        stream = files.unpacked(bomb, suffix)
        assert sum(iter(lambda: len(stream.read(1 << 16)), 0)) == 20 << 20
        assert tracemalloc.get_traced_memory()[1] < 12 << 20
    finally:
        tracemalloc.stop()


def test_a_frame_of_zstd_may_need_the_largest_window():
    """Pushshift's dumps of Reddit are written with --long=31."""
    compressor = zstandard.ZstdCompressor(
        compression_params=zstandard.ZstdCompressionParameters.from_level(1, window_log=31))
    stream = compressor.compressobj()
    assert unpacked(stream.compress(TEXT) + stream.flush(), ".zst") == TEXT
