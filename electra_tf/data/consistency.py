"""Whether the values of a manifest fit each other: what no type can say."""

import collections
import dataclasses
import re
from collections.abc import Iterator
from typing import Any

from electra_tf.platform.errors import shown

LONGEST_SEQUENCE = 1 << 16
"""Tokens of an example; 128 times ELECTRA's, and a position still fits into 16 bits."""
LARGEST_VOCABULARY = 1 << 24
"""Entries; the largest published WordPiece vocabularies have 500,000."""
PACKINGS = ("full", "reference")
_TOKENS_OF_NOTHING = 2
"""[CLS] and [SEP]."""


def contradiction(manifest: Any) -> str:
    """Returns the first thing of a `manifest.Manifest` that can't be so; empty if all fits."""
    return next(_contradictions(manifest), "")


def _contradictions(manifest: Any) -> Iterator[str]:
    yield from _of_the_whole(manifest)
    names = [shard.name for shard in manifest.shards]
    if len(set(names)) < len(names):
        yield f"two shards have the name {collections.Counter(names).most_common(1)[0][0]!r}"
    for shard in manifest.shards:
        yield from _of_a_shard(shard, manifest)
    yield from _of_settings(manifest)
    yield from _of_counts(manifest)


def _of_the_whole(manifest: Any) -> Iterator[str]:
    length, size = manifest.max_seq_length, manifest.vocabulary.size
    if not _TOKENS_OF_NOTHING < length <= LONGEST_SEQUENCE:
        yield f"max_seq_length must be 3 to {LONGEST_SEQUENCE:,}. Received: {length}"
    if not 5 <= size <= LARGEST_VOCABULARY:
        yield f"vocabulary.size must be 5 to {LARGEST_VOCABULARY:,}. Received: {size}"
    wanted = 2 if size <= 1 << 16 else 4
    if manifest.token_bytes != wanted:
        yield (f"token_bytes is {manifest.token_bytes}, but ids of {size:,} entries take "
               f"{wanted} bytes")
    if manifest.packing not in PACKINGS:
        yield f"packing must be {' or '.join(PACKINGS)}. Received: {shown(manifest.packing)}"
    if not _is_sha256(manifest.vocabulary.sha256):
        yield f"vocabulary.sha256 is none: {shown(manifest.vocabulary.sha256)}"


def _of_a_shard(shard: Any, manifest: Any) -> Iterator[str]:
    if shard.name in ("", ".", "..") or re.search(r"[/\\\x00-\x1f\x7f]", shard.name):
        yield f"a shard's name must be that of a file here. Received: {shown(shard.name)}"
    if not _is_sha256(shard.sha256):
        yield f"the sha256 of {shard.name!r} is none: {shown(shard.sha256)}"
    least, most = (shard.examples * length
                   for length in (_TOKENS_OF_NOTHING, manifest.max_seq_length))
    if shard.examples < 0 or not least <= shard.tokens <= most:
        yield (f"{shard.name!r} can't have {shard.tokens} tokens in {shard.examples} examples of "
               f"at most {manifest.max_seq_length}")
    if shard.bytes < shard.tokens * manifest.token_bytes:
        yield (f"{shard.name!r} can't hold {shard.tokens} tokens of {manifest.token_bytes} bytes "
               f"in {shard.bytes} bytes")


def _of_settings(manifest: Any) -> Iterator[str]:
    tokenization = manifest.vocabulary
    for name, value in (("max_seq_length", manifest.max_seq_length),
                        ("packing", manifest.packing),
                        *dataclasses.asdict(tokenization.normalization).items(),
                        ("vocabulary_sha256", tokenization.sha256)):
        if manifest.settings.get(name, value) != value:
            yield f"{name} is {shown(value)}, but settings say {shown(manifest.settings[name])}"


def _of_counts(manifest: Any) -> Iterator[str]:
    counts = manifest.counts
    by_script = counts.unknown_by_script or {}
    numbers = vars(counts) | {f"unknown_by_script[{shown(name)}]": value
                              for name, value in by_script.items()}
    del numbers["unknown_by_script"]
    negative = [name for name, value in numbers.items() if value < 0]
    if negative:
        yield f"counts.{negative[0]} is negative"
    if counts.unknown_words > counts.tokenizer_words:
        yield f"counts.unknown_words is {counts.unknown_words} of {counts.tokenizer_words} words"
    if counts.unknown_by_script is not None and sum(by_script.values()) != counts.unknown_words:
        yield (f"counts.unknown_words is {counts.unknown_words}, but by script they are "
               f"{sum(by_script.values())}")
    examples, tokens = (sum(getattr(shard, name) for shard in manifest.shards)
                        for name in ("examples", "tokens"))
    if counts.examples != examples:
        yield f"counts.examples is {counts.examples}, but the shards have {examples}"
    if counts.content_tokens != counts.text_tokens:
        yield (f"counts.content_tokens is {counts.content_tokens}, but text_tokens is "
               f"{counts.text_tokens}")
    if counts.content_tokens + counts.special_tokens != tokens:
        yield (f"counts.content_tokens and special_tokens are {counts.content_tokens} and "
               f"{counts.special_tokens}, but the shards have {tokens} tokens")
    if tokens + counts.padding_positions != examples * manifest.max_seq_length:
        yield (f"counts.padding_positions is {counts.padding_positions}, but {examples} examples "
               f"of {manifest.max_seq_length} positions have {tokens} tokens")
    if counts.single_segment_examples > examples:
        yield (f"counts.single_segment_examples is {counts.single_segment_examples} of "
               f"{examples} examples")


def _is_sha256(text: str) -> bool:
    return re.fullmatch("[0-9a-f]{64}", text) is not None
