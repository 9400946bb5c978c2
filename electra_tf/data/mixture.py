"""The directories of records that a run reads, and each one's share of its examples."""

import dataclasses
import fractions
import functools
import hashlib
import json
import re
from collections.abc import Sequence

from electra_tf.data import manifest as manifests
from electra_tf.data.manifest import Manifest, Tokenization
from electra_tf.platform import storage
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path

SHARES = 10_000
"""Examples of a block, of which every directory has a fixed number: shares are ten-thousandths."""
_WEIGHTED = re.compile(r"(?P<directory>.+):(?P<weight>\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})")
"""A path may hold colons of its own; what follows the last one is a weight if it is a number."""
_EXAMPLE = "--data_dir=books:0.3,web:0.7"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Source:
    """One directory."""

    data_dir: Path
    manifest: Manifest
    share: int
    """Training examples of it among `SHARES`, at least 1."""

    def shards(self, split: str) -> list[tuple[str, int]]:
        """Returns path and number of examples of every shard of "train" or "eval", in order."""
        return [(str(self.data_dir / shard.name), shard.examples)
                for shard in self.manifest.shards_of(split)]

    def examples(self, split: str) -> int:
        """Returns how many examples "train" or "eval" has."""
        return sum(shard.examples for shard in self.manifest.shards_of(split))


@dataclasses.dataclass(frozen=True)
class Mixture:
    """What a run reads: one directory, or several in fixed shares; see `load`.

    The order of the directories is part of it: it decides which example comes when.
    """

    sources: tuple[Source, ...]

    @property
    def max_seq_length(self) -> int:
        """Tokens that an example has at most, L of the build."""
        return self.sources[0].manifest.max_seq_length

    @property
    def packing(self) -> str:
        """"full" if it is that of all directories, else another."""
        return max((source.manifest.packing for source in self.sources),
                   key=lambda packing: packing != "full")

    @property
    def token_bytes(self) -> int:
        """Bytes of a stored id."""
        return self.sources[0].manifest.token_bytes

    @property
    def vocabulary(self) -> Tokenization:
        """The vocabulary, and what was done to text."""
        return self.sources[0].manifest.vocabulary

    @property
    def vocabulary_path(self) -> Path:
        """A copy of the vocabulary beside the records."""
        return self.sources[0].data_dir / manifests.VOCABULARY_NAME

    def tokens(self, split: str) -> int:
        """Returns how many tokens "train" or "eval" has in all directories together."""
        return sum(shard.tokens for source in self.sources
                   for shard in source.manifest.shards_of(split))

    def examples(self, split: str) -> int:
        """Returns how many examples "train" or "eval" has in all directories together."""
        return sum(source.examples(split) for source in self.sources)

    @functools.cached_property
    def fingerprint(self) -> str:
        """Hexadecimal sha256 over what decides the examples and their order, wherever they are.

        That of the manifest if there is one directory.
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
        data_dir: a directory; or several with commas between them, all followed by a colon and a
            weight ("a:0.5,gs://x/b:0.5"), or none: then every example is as likely as any other.

    Raises:
        UserError: a manifest can't be read, the directories don't go together, or a weight is
            missing, zero or less than a ten-thousandth of their sum.
    """
    names, weights = _parsed(str(data_dir))
    loaded = [(storage.path(name), manifests.load(name)) for name in names]
    _require_alike(loaded)
    if len(loaded) == 1:
        (directory, manifest), = loaded
        return Mixture((Source(data_dir=directory, manifest=manifest, share=SHARES),))
    for directory, manifest in loaded:
        if not any(shard.examples for shard in manifest.shards_of("train")):
            raise UserError(f"the records in {directory} hold no training examples; leave them out "
                            "of --data_dir, or build them again with more text.")
    if weights is None:
        weights = [fractions.Fraction(sum(shard.examples for shard in manifest.shards_of("train")))
                   for _, manifest in loaded]
    return Mixture(tuple(
        Source(data_dir=directory, manifest=manifest, share=share) for (directory, manifest), share
        in zip(loaded, _shares(names, weights), strict=True)))


def _parsed(text: str) -> tuple[list[str], list[fractions.Fraction] | None]:
    """Returns directories, and their weights if they have any."""
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
    """Returns whole numbers that add up to `SHARES`: rounded down, the largest rests up."""
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
