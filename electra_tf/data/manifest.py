"""The manifest of a directory of records, `manifest.json`; a build writes it last."""

import concurrent.futures
import dataclasses
import functools
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from annotated_types import Interval

from electra_tf.core import atomic_file, storage, strict_json
from electra_tf.core.errors import UserError, shown
from electra_tf.core.storage import MIB, Path, file_sha256
from electra_tf.data.records import SPLITS, NonNegative, Records, Shard, overhead_bytes
from electra_tf.text.normalization import Tokenization

FORMAT_VERSION = 1
MANIFEST_NAME = "manifest.json"
MAX_SEQUENCE_LENGTH = 1 << 16  # Most tokens of an example; a position fits into 16 bits.
_MAX_VOCABULARY = 1 << 24
"""Most entries; the largest published WordPiece vocabularies have 500,000."""
_MAX_BYTES = 64 * MIB  # Largest file: 200,000 shards of 300 bytes each, 3 TB of text.
_BUILD = "`python -m data_prep.build_pretraining_data`"


class Counts(strict_json.Object):
    """Numbers of what a build read, dropped and wrote; `+` adds those of two shards."""

    documents: NonNegative = 0
    lines: NonNegative = 0
    words: NonNegative = 0  # Words between white space.
    text_bytes: NonNegative = 0  # Bytes of UTF-8 without line ends.
    letterless_lines: NonNegative = 0
    """The fields from here to `dropped_text_bytes` count dropped text. Each dropped line is in one
    of them and not in `lines`; dropped documents are also in `documents`."""
    boilerplate_lines: NonNegative = 0  # In manifests of earlier builds only.
    short_or_long_lines: NonNegative = 0
    other_language_documents: NonNegative = 0  # In manifests of earlier builds only.
    near_duplicate_documents: NonNegative = 0
    lines_of_dropped_documents: NonNegative = 0
    duplicate_lines: NonNegative = 0
    contaminated_lines: NonNegative = 0  # Lines with a text of a benchmark's test set.
    dropped_text_bytes: NonNegative = 0  # Bytes of all dropped lines.
    text_tokens: NonNegative = 0  # WordPiece tokens of the text.
    content_tokens: NonNegative = 0
    """Tokens of the examples that are neither special nor padding; equals `text_tokens`."""
    special_tokens: NonNegative = 0  # [CLS] and [SEP] of the examples.
    padding_positions: NonNegative = 0
    examples: NonNegative = 0
    single_segment_examples: NonNegative = 0
    tokenizer_words: NonNegative = 0  # Words of the tokenizer; a punctuation mark is a word.
    unknown_words: NonNegative = 0  # Words that became [UNK].
    characters: NonNegative = 0
    changed_characters: NonNegative = 0  # Letters that stripping accents changes or would change.
    skipped_documents: NonNegative = 0
    """Damaged documents, or parts of one, that --on_error=skip left out."""
    hangul_characters: NonNegative = 0  # In manifests of earlier builds only.
    unknown_by_script: Mapping[str, NonNegative] | None = None  # In these only.

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(**{name: value + getattr(other, name) for name, value in vars(self).items()
                         if name != "unknown_by_script"})


class SourceCounts(strict_json.Object):
    """Counts of one source of several."""

    name: str  # Name of the source in --input.
    share: float  # Requested fraction of the text bytes, in (0, 1]; 0 without a request.
    documents: int
    text_bytes: int  # UTF-8, without line ends.


class Manifest(strict_json.Object):
    """The content of manifest.json; see `load`, `save` and `verify_shards`."""

    format_version: Literal[1]
    max_seq_length: Annotated[int, Interval(ge=3, le=MAX_SEQUENCE_LENGTH)]
    """L, most tokens of an example."""
    packing: Literal["full", "reference"]
    token_bytes: int  # Bytes of one stored id: 2 or 4.
    vocabulary: Tokenization
    settings: Mapping[str, str | int | float | bool | None]
    """Every setting that affects the examples, and `corpus_sha256`."""
    counts: Counts  # Counts of both splits together.
    shards: tuple[Shard, ...]
    sources: tuple[SourceCounts, ...] = ()
    """Counts of each source in the order of --input, if there are several."""
    skipped: tuple[str, ...] = ()  # Errors of the first `skipped_documents`, a line each.

    def save(self, data_dir: str | Path) -> None:
        """Writes manifest.json as a whole, or raises `UserError`."""
        atomic_file.write_json(
            storage.path(data_dir) / MANIFEST_NAME,
            dataclasses.asdict(self) | {"vocabulary": self.vocabulary.to_dict()})

    def shards_of(self, split: str) -> tuple[Shard, ...]:
        """Returns the shards of "train" or "eval", in order."""
        return tuple(shard for shard in self.shards if shard.split == split)

    @functools.cached_property
    def fingerprint(self) -> str:
        """The value of `Records.fingerprint`."""
        decisive = [self.max_seq_length, self.token_bytes, self.vocabulary.to_dict(),
                    [(shard.split, shard.examples, shard.sha256) for shard in self.shards]]
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()

    def records(self, data_dir: Path) -> Records:
        """Returns the facts that readers of the directory need."""
        return Records(
            data_dir=data_dir, max_seq_length=self.max_seq_length, packing=self.packing,
            token_bytes=self.token_bytes, vocab_size=self.vocabulary.size,
            shards={split: self.shards_of(split) for split in SPLITS},
            fingerprint=self.fingerprint)


def load(data_dir: str | Path) -> Manifest:
    """Reads `data_dir`/manifest.json; raises `UserError` if missing, damaged or inconsistent."""
    path = storage.path(data_dir) / MANIFEST_NAME
    fix = f"restore it from a copy, or build the records again with {_BUILD} --overwrite."
    manifest = strict_json.read(path, Manifest, max_bytes=_MAX_BYTES, fix=fix, absent=(
        f"{path} does not exist: the build of these records did not finish, or the directory is "
        f"wrong. Run {_BUILD} with --output_dir={data_dir}, or name the right directory."))
    problem = next(_contradictions(manifest), "")
    if problem:
        raise UserError(f"{path} is damaged: {problem}; {fix}")
    return manifest


def load_records(data_dir: str | Path) -> Records:
    """Reads the manifest of a directory as `load` does."""
    return load(data_dir).records(storage.path(data_dir))


def _contradictions(manifest: Manifest) -> Iterator[str]:
    # The vocabulary, and the bytes of an id.
    length, vocabulary, shards = manifest.max_seq_length, manifest.vocabulary, manifest.shards
    if not 5 <= vocabulary.size <= _MAX_VOCABULARY:
        yield f"vocabulary.size must be 5 to {_MAX_VOCABULARY:,}. Received: {vocabulary.size}"
    if manifest.token_bytes != token_bytes_for(vocabulary.size):
        yield (f"token_bytes is {manifest.token_bytes}, but ids of {vocabulary.size:,} entries "
               f"take {token_bytes_for(vocabulary.size)} bytes")

    # Every shard's name, and its counts: an example has [CLS] and [SEP] and at most L tokens.
    if len({shard.name for shard in shards}) < len(shards):
        yield "two shards have the same name"
    for shard in shards:
        if shard.name in ("", ".", "..") or re.search(r"[/\\\x00-\x1f\x7f]", shard.name):
            yield f"a shard's name must be a plain file name. Received: {shown(shard.name)}"
        if not 2 * shard.examples <= shard.tokens <= length * shard.examples:
            yield (f"{shard.name!r} can't have {shard.tokens} tokens in {shard.examples} examples "
                   f"of at most {length}")
        if not shard.name.startswith(shard.split):
            yield f"{shard.name!r} is not the name of a shard of the split {shard.split!r}"
        ids = shard.tokens * manifest.token_bytes
        min_bytes, max_bytes = (ids + shard.examples * overhead_bytes(tokens, manifest.token_bytes)
                                for tokens in (2, length))
        if not min_bytes <= shard.bytes <= max_bytes:
            yield (f"{shard.name!r} can't have {shard.tokens} tokens in {shard.examples} examples "
                   f"and {shard.bytes} bytes")

    # Values that `settings` repeat.
    for name, value in (("max_seq_length", length), ("packing", manifest.packing),
                        *dataclasses.asdict(vocabulary.normalization).items(),
                        ("vocabulary_sha256", vocabulary.sha256)):
        value = list(value) if isinstance(value, tuple) else value
        if manifest.settings.get(name, value) != value:
            yield f"{name} is {shown(value)}, but settings say {shown(manifest.settings[name])}"

    # Counts of the whole build, which the shards' counts give.
    counts = manifest.counts
    examples, tokens = (sum(getattr(shard, name) for shard in shards)
                        for name in ("examples", "tokens"))
    for name, value in (("examples", examples), ("padding_positions", length * examples - tokens),
                        ("special_tokens", tokens - counts.content_tokens),
                        ("text_tokens", counts.content_tokens)):
        if getattr(counts, name) != value:
            yield (f"counts.{name} is {getattr(counts, name)}, but the shards' and the other "
                   f"counts give {value}")
    if counts.single_segment_examples > examples or counts.unknown_words > counts.tokenizer_words:
        yield "counts.single_segment_examples or counts.unknown_words is more than the total"


def verify_shards(data_dir: str | Path, manifest: Manifest, checksums: bool = True) -> None:
    """Compares shards' sizes and, with `checksums`, SHA-256 (1 GB/s), or raises `UserError`."""
    def check(shard: Shard) -> None:
        path, problem = storage.path(data_dir) / shard.name, ""
        try:
            size = path.stat().st_size
            if size != shard.bytes:
                problem = f"it has {size} bytes instead of {shard.bytes}"
            elif checksums and file_sha256(path) != shard.sha256:
                problem = "its content changed (wrong checksum)"
        except OSError as error:
            problem = f"it cannot be read ({error.strerror})"
        if problem:
            raise UserError(
                f"{path} is not the shard that was built: {problem}; copy it again, or build the "
                f"records again with {_BUILD} --overwrite.")

    # A request for a size to an object store takes 30 ms: 30,000 would take a quarter of an hour.
    with concurrent.futures.ThreadPoolExecutor(4 if checksums else 32) as pool:
        list(pool.map(check, manifest.shards))


def token_bytes_for(vocab_size: int) -> int:
    """Returns how many bytes one stored id takes: 2, or 4 past 65,536 tokens."""
    return 2 if vocab_size <= 65536 else 4
