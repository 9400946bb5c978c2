"""The directories of records that --data_dir names, and each one's share of the examples."""

import dataclasses
import fractions
import functools
import hashlib
import json
import re
from collections.abc import Sequence

from electra_tf.data import manifest as manifests
from electra_tf.data import order
from electra_tf.data.manifest import Manifest
from electra_tf.data.order import SHARES
from electra_tf.platform import storage
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path
from electra_tf.text.tokenization import Tokenization

_WEIGHTED = re.compile(r"(?P<directory>.+):(?P<weight>\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})")
"""A path may contain colons; the text after the last one is a weight if it is a number."""
_EXAMPLE = "--data_dir=books:0.3,web:0.7"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Source(order.Source):
    """One directory with its manifest."""

    data_dir: Path
    manifest: Manifest

    @classmethod
    def of(cls, data_dir: Path, manifest: Manifest, share: int = SHARES) -> "Source":
        """Returns a directory's shards as its manifest lists them."""
        return cls(data_dir=data_dir, manifest=manifest, share=share, shards={
            split: [(str(data_dir / shard.name), shard.examples)
                    for shard in manifest.shards_of(split)] for split in manifests.SPLITS})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Mixture(order.Records):
    """The records of a run: one directory, or several in fixed shares; see `load`."""

    sources: tuple[Source, ...]

    @classmethod
    def of(cls, sources: Sequence[Source]) -> "Mixture":
        """Returns directories that have the same vocabulary and length."""
        first = sources[0].manifest
        return cls(sources=tuple(sources), max_seq_length=first.max_seq_length,
                   token_bytes=first.token_bytes, vocab_size=first.vocabulary.size)

    @property
    def packing(self) -> str:
        """"full" if every directory was built with it, another directory's packing otherwise."""
        return max((source.manifest.packing for source in self.sources),
                   key=lambda packing: packing != "full")

    @property
    def vocabulary(self) -> Tokenization:
        """The vocabulary's digest and the normalization of the text."""
        return self.sources[0].manifest.vocabulary

    @property
    def vocabulary_path(self) -> Path:
        """Path of the copy of the vocabulary beside the records."""
        return self.sources[0].data_dir / manifests.VOCABULARY_NAME

    def tokens(self, split: str) -> int:
        """Returns the number of tokens of "train" or "eval" in all directories."""
        return sum(shard.tokens for source in self.sources
                   for shard in source.manifest.shards_of(split))

    @functools.cached_property
    def fingerprint(self) -> str:
        """Hexadecimal sha256 over the examples and their order, independent of the location.

        One directory has its manifest's fingerprint.
        """
        parts = [(source.share, source.manifest.fingerprint) for source in self.sources]
        if len(parts) == 1:
            return parts[0][1]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def verify(self, checksums: bool = True) -> None:
        """Checks every shard; see `manifest.verify_shards`."""
        for source in self.sources:
            manifests.verify_shards(source.data_dir, source.manifest, checksums)

    def __str__(self) -> str:
        return ", ".join(str(source.data_dir) for source in self.sources)


def load(data_dir: str | Path) -> Mixture:
    """Reads the manifests of what --data_dir names.

    Args:
        data_dir: a directory, or several separated by commas. Each of several has a colon and a
            weight ("a:0.5,gs://x/b:0.5"); without weights, all examples are equally likely.

    Raises:
        UserError: a manifest is unreadable, the directories have different vocabularies or
            lengths, or a weight is missing or less than a ten-thousandth of their sum.
    """
    names, weights = _parsed(str(data_dir))
    loaded = [(storage.path(name), manifests.load(name)) for name in names]
    _require_alike(loaded)
    if len(loaded) == 1:
        return Mixture.of([Source.of(*loaded[0])])
    for directory, manifest in loaded:
        if not any(shard.examples for shard in manifest.shards_of("train")):
            raise UserError(f"the records in {directory} hold no training examples; leave them out "
                            "of --data_dir, or build them again with more text.")
    if weights is None:
        weights = [fractions.Fraction(sum(shard.examples for shard in manifest.shards_of("train")))
                   for _, manifest in loaded]
    return Mixture.of([Source.of(directory, manifest, share) for (directory, manifest), share
                       in zip(loaded, _shares(names, weights), strict=True)])


def _parsed(text: str) -> tuple[list[str], list[fractions.Fraction] | None]:
    """Returns the directories and their weights; None without weights."""
    entries = text.split(",")
    if len(entries) == 1:
        return entries, None
    found = [_WEIGHTED.fullmatch(entry) for entry in entries]
    if not all(entries):
        raise UserError(f"--data_dir has a comma without a directory beside it. Received: "
                        f"{shown(text)}; write it as {_EXAMPLE}.")
    if any(found) and not all(found):
        entry = shown(entries[found.index(None)])
        raise UserError(f"--data_dir gives {entry} no weight; give one to every directory, as in "
                        f"{_EXAMPLE}, or to none.")
    names = [match["directory"] if match else entry
             for match, entry in zip(found, entries, strict=True)]
    places = [str(storage.path(name).absolute()) for name in names]
    twice = [name for name, place in zip(names, places, strict=True) if places.count(place) > 1]
    if twice:
        raise UserError(f"--data_dir names {twice[0]} twice; give it the sum of both weights.")
    return names, [fractions.Fraction(match["weight"]) for match in found] if all(found) else None


def _require_alike(loaded: Sequence[tuple[Path, Manifest]]) -> None:
    first_directory, first = loaded[0]
    for directory, manifest in loaded[1:]:
        for what, one, other in (
                ("max_seq_length", first.max_seq_length, manifest.max_seq_length),
                ("normalization", first.vocabulary.normalization.facts(),
                 manifest.vocabulary.normalization.facts()),
                ("vocabulary", first.vocabulary.sha256, manifest.vocabulary.sha256)):
            if one != other:
                raise UserError(
                    f"the records in {first_directory} and {directory} can't be mixed: their "
                    f"{what} differs ({_brief(one)}, {_brief(other)}); build both with the same.")


def _shares(names: Sequence[str], weights: Sequence[fractions.Fraction]) -> list[int]:
    """Returns integers that sum to `SHARES`, rounded by the largest remainder."""
    total = sum(weights)
    exact = [weight * SHARES / total if total else fractions.Fraction(0) for weight in weights]
    for name, share in zip(names, exact, strict=True):
        if share < 1:
            raise UserError(f"--data_dir gives {name} less than a {SHARES:,}th of the examples; "
                            "give it more weight, or leave it out.")
    shares = [int(share) for share in exact]
    by_rest = sorted(range(len(shares)), key=lambda index: shares[index] - exact[index])
    for index in by_rest[:SHARES - sum(shares)]:
        shares[index] += 1
    return shares


def _brief(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {setting}" for name, setting in value.items())
    return str(value)[:12]
