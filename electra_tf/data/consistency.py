"""Finds contradictions between the values of a manifest."""

import collections
import dataclasses
import re
from collections.abc import Iterator
from typing import Any

from electra_tf.platform.errors import shown

LONGEST_SEQUENCE = 1 << 16
"""Most tokens of an example; a position fits into 16 bits."""
LARGEST_VOCABULARY = 1 << 24
"""Most entries; the largest published WordPiece vocabularies have 500,000."""
PACKINGS = ("full", "reference")


def contradiction(manifest: Any) -> str:
    """Returns the first impossible value of a `manifest.Manifest`; "" if all values agree."""
    return next(_contradictions(manifest), "")


def _contradictions(manifest: Any) -> Iterator[str]:
    length, text = manifest.max_seq_length, manifest.vocabulary
    if not 2 < length <= LONGEST_SEQUENCE:
        yield f"max_seq_length must be 3 to {LONGEST_SEQUENCE:,}. Received: {length}"
    if not 5 <= text.size <= LARGEST_VOCABULARY:
        yield f"vocabulary.size must be 5 to {LARGEST_VOCABULARY:,}. Received: {text.size}"
    wanted = 2 if text.size <= 1 << 16 else 4
    if manifest.token_bytes != wanted:
        yield (f"token_bytes is {manifest.token_bytes}, but ids of {text.size:,} entries take "
               f"{wanted} bytes")
    if manifest.packing not in PACKINGS:
        yield f"packing must be {' or '.join(PACKINGS)}. Received: {shown(manifest.packing)}"
    names = [shard.name for shard in manifest.shards]
    if len(set(names)) < len(names):
        yield f"two shards have the name {collections.Counter(names).most_common(1)[0][0]!r}"
    for name, digest in (("vocabulary.sha256", text.sha256), *(
            (f"the sha256 of {shard.name!r}", shard.sha256) for shard in manifest.shards)):
        if not re.fullmatch("[0-9a-f]{64}", digest):
            yield f"{name} is none: {shown(digest)}"
    for shard in manifest.shards:
        yield from _of_a_shard(shard, length, manifest.token_bytes)
    for name, value in (("max_seq_length", length), ("packing", manifest.packing),
                        *dataclasses.asdict(text.normalization).items(),
                        ("vocabulary_sha256", text.sha256)):
        if manifest.settings.get(name, value) != value:
            yield f"{name} is {shown(value)}, but settings say {shown(manifest.settings[name])}"
    yield from _of_counts(manifest)


def _of_a_shard(shard: Any, length: int, token_bytes: int) -> Iterator[str]:
    if shard.name in ("", ".", "..") or re.search(r"[/\\\x00-\x1f\x7f]", shard.name):
        yield f"a shard's name must be that of a file here. Received: {shown(shard.name)}"
    if shard.examples < 0 or not 2 * shard.examples <= shard.tokens <= length * shard.examples:
        yield (f"{shard.name!r} can't have {shard.tokens} tokens in {shard.examples} examples of "
               f"at most {length}")
    if shard.bytes < shard.tokens * token_bytes:
        yield (f"{shard.name!r} can't hold {shard.tokens} tokens of {token_bytes} bytes in "
               f"{shard.bytes} bytes")


def _of_counts(manifest: Any) -> Iterator[str]:
    counts, by_script = manifest.counts, manifest.counts.unknown_by_script or {}
    numbers = vars(counts) | {f"unknown_by_script[{shown(name)}]": value
                              for name, value in by_script.items()}
    del numbers["unknown_by_script"]
    for name, value in numbers.items():
        if value < 0:
            yield f"counts.{name} is negative"
    examples, tokens = (sum(getattr(shard, name) for shard in manifest.shards)
                        for name in ("examples", "tokens"))
    for name, whole, what in (("unknown_words", counts.tokenizer_words, "words"),
                              ("single_segment_examples", examples, "examples")):
        if getattr(counts, name) > whole:
            yield f"counts.{name} is {getattr(counts, name)} of {whole} {what}"
    if counts.unknown_by_script is not None and sum(by_script.values()) != counts.unknown_words:
        yield (f"counts.unknown_words is {counts.unknown_words}, but by script they are "
               f"{sum(by_script.values())}")
    if counts.examples != examples:
        yield f"counts.examples is {counts.examples}, but the shards have {examples}"
    if counts.content_tokens != counts.text_tokens:
        yield (f"counts.content_tokens is {counts.content_tokens}, but text_tokens is "
               f"{counts.text_tokens}")
    for name, expected in (
            ("special_tokens", tokens - counts.content_tokens),
            ("padding_positions", examples * manifest.max_seq_length - tokens)):
        if getattr(counts, name) != expected:
            yield (f"counts.{name} is {getattr(counts, name)}, but by the shards and the other "
                   f"counts it is {expected}")
