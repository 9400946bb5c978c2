"""The directory of a build: what is finished, whose it is, and its manifest."""

import contextlib
import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from data_prep.cleaning import plan
from data_prep.documents import ReadingNotes
from data_prep.work_units import WorkUnit
from electra_tf.data import manifest
from electra_tf.platform import atomic_file, strict_json
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import MIB, Path

_STATE_NAME = "unfinished_build.json"
_SHARDS = "*.tfrecord"
_RECEIPTS = ".finished-*.json"

Outcome = tuple[manifest.Shard, manifest.Counts, ReadingNotes]
_MOST_BYTES = MIB
"""Of a receipt or the state, which take 1 KB."""


@dataclasses.dataclass(frozen=True)
class _Receipt:
    """A file that says that a shard is finished."""

    __pydantic_config__ = strict_json.STRICT

    key: str
    """Of the text, the settings and the other fields; another text or a changed receipt has
    another."""
    shard: manifest.Shard
    counts: manifest.Counts
    notes: ReadingNotes


@dataclasses.dataclass(frozen=True)
class RecordDirectory:
    """A directory that holds one build.

    Until the manifest is written, `unfinished_build.json` has the build's identity, and a receipt
    per shard says that this one is finished.
    """

    path: Path

    def claim(self, identity: Mapping[str, Any], overwrite: bool) -> bool:
        """Prepares the directory for a build; returns True if it holds this build, finished.

        Raises:
            UserError: it holds a build of other settings or another text, or cannot be written to.
        """
        atomic_file.make_directory(self.path)
        if overwrite:
            self._clear()
        if (self.path / manifest.MANIFEST_NAME).exists():
            finished = manifest.load(self.path)
            self._refuse_other(finished.settings, identity)
            manifest.verify_shards(self.path, finished, checksums=False)
            return True
        if (claimed := self._claimed_for()) is not None:
            self._refuse_other(claimed, identity)
        elif any(self.path.glob(_SHARDS)):
            raise UserError(f"{self.path} holds shards of an unknown build; use another "
                            "--output_dir, or --overwrite to remove them.")
        atomic_file.write_atomically(self.path / _STATE_NAME, _json(identity))
        atomic_file.remove_unfinished(self.path)
        return False

    def build_or_reuse(
        self, unit: WorkUnit, build: Callable[[WorkUnit], Outcome], identity: Mapping[str, Any]
    ) -> Outcome:
        """Returns what `build` returns for the unit, or its stored result if the shard is there.

        Raises:
            UserError: another build has the directory; a cluster's worker can outlive its build.
        """
        if self._claimed_for() != identity:
            raise UserError(f"{self.path} was taken over by another build, or finished by another "
                            "run of this one.")
        path = self.path / f".finished-{unit.name}.json"
        if path.exists():
            known = strict_json.read(path, _Receipt, most=_MOST_BYTES, fix=(
                "remove it, and its shard is built again."))
            with contextlib.suppress(FileNotFoundError):
                outcome = known.shard, known.counts, known.notes
                if known.key == _receipt_key(unit, identity, outcome) and (
                        manifest.file_sha256(self.path / known.shard.name) == known.shard.sha256):
                    return outcome
        outcome = build(unit)
        receipt = _Receipt(_receipt_key(unit, identity, outcome), *outcome)
        atomic_file.write_atomically(path, _json(dataclasses.asdict(receipt)))
        return outcome

    def finish(self, result: manifest.Manifest) -> None:
        """Writes the manifest, then removes what only an unfinished build needs."""
        result.save(self.path)
        (self.path / _STATE_NAME).unlink(missing_ok=True)
        for pattern in (_RECEIPTS, plan.FILES):
            for path in self.path.glob(pattern):
                path.unlink()

    def _claimed_for(self) -> Mapping[str, Any] | None:
        """Returns the identity of the unfinished build; None if there is none."""
        path = self.path / _STATE_NAME
        if not path.exists():
            return None
        return strict_json.read(
            path, dict[str, str | int | float | bool], most=_MOST_BYTES,
            fix="use --overwrite to build from the start.")

    def _refuse_other(self, existing: Mapping[str, Any], identity: Mapping[str, Any]) -> None:
        different = [f"{name} ({shown(existing.get(name))} there, {shown(identity.get(name))} now)"
                     for name in identity | existing if existing.get(name) != identity.get(name)]
        if different:
            raise UserError(f"{self.path} holds another build: {', '.join(different)}; use another "
                            "--output_dir, or --overwrite to replace it.")

    def _clear(self) -> None:
        (self.path / manifest.MANIFEST_NAME).unlink(missing_ok=True)  # First: no longer valid.
        for pattern in (_SHARDS, _RECEIPTS, plan.FILES, _STATE_NAME):
            for path in self.path.glob(pattern):
                path.unlink()


def _receipt_key(unit: WorkUnit, identity: Mapping[str, Any], outcome: Outcome) -> str:
    """Returns a digest of the unit, the build's identity and the receipt's content."""
    digest = hashlib.sha256(_json(identity))
    for part in unit.parts:
        digest.update(b"%d %d %d\n" % (len(part.content), part.begins, part.ends))
        digest.update(part.content)
    for part in outcome:
        digest.update(_json(dataclasses.asdict(part)))
    return digest.hexdigest()


def _json(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, indent=1) + "\n").encode()
