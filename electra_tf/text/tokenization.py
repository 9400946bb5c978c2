"""How text becomes token ids: the vocabulary and the normalization as one value, and its files.

`vocab.txt` holds tokens alone, so the normalization that they were learned under stands in
`vocab.txt.manifest.json`. A vocabulary without that file, as BERT's, is read as its user says.
"""

import dataclasses
import json
from typing import Any

from absl import flags

from electra_tf.platform import atomic_file, storage, strict_json
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.text.normalization import UNCASED, Normalization, asked_for
from electra_tf.text.vocabulary import Vocabulary

SUFFIX = ".manifest.json"
VOCABULARY_FACT = "vocabulary"
"""Name of the vocabulary's digest among the facts of a run."""
_MOST_BYTES = 1 << 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextSettings:
    """How text becomes token ids; what all programs pass on."""

    vocabulary: Vocabulary
    normalization: Normalization = UNCASED

    @classmethod
    def load(cls, vocab_file: Path, asked: Normalization | None = None) -> "TextSettings":
        """Reads a vocabulary, with or without a manifest beside it.

        Args:
            vocab_file: one token a line.
            asked: by the user; None for the manifest's, or without one BERT's uncased.

        Raises:
            UserError: a file is damaged, or the manifest says otherwise than is asked.
        """
        vocabulary = Vocabulary.load(vocab_file)
        recorded = recorded_normalization(vocabulary, vocab_file)
        if recorded is not None and asked not in (None, recorded):
            raise UserError(f"{vocab_file} was learned with normalization {recorded}, not {asked}: "
                            "leave the flag out, or learn another vocabulary.")
        return cls(vocabulary=vocabulary, normalization=recorded or asked or UNCASED)

    @classmethod
    def of_flags(cls, values: flags.FlagValues) -> "TextSettings":
        """Returns what --vocab_file and `normalization.FLAGS` name; raises as `load`."""
        return cls.load(storage.path(values.vocab_file), asked_for(values))

    @property
    def tokenization(self) -> "Tokenization":
        """What records keep of it."""
        return Tokenization(size=self.vocabulary.size, sha256=self.vocabulary.sha256,
                            **dataclasses.asdict(self.normalization))

    def facts(self) -> dict[str, Any]:
        """Returns what a run keeps of it beside the vocabulary itself."""
        return {VOCABULARY_FACT: self.vocabulary.sha256} | self.normalization.facts()

    def save(self, vocab_file: Path) -> None:
        """Writes the vocabulary and its manifest; raises UserError if it can't.

        The manifest comes first: if the program is interrupted, no vocabulary is left without it.
        """
        content = json.dumps(self.tokenization.facts(), indent=1) + "\n"
        atomic_file.write_atomically(manifest_of(vocab_file), content.encode())
        self.vocabulary.save(vocab_file)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tokenization(Normalization):
    """What files keep of `TextSettings`: which vocabulary, and the normalization's fields."""

    __pydantic_config__ = strict_json.STRICT

    lower_case: bool = dataclasses.field()  # Without the defaults of `Normalization`.
    strip_accents: bool = dataclasses.field()
    size: int
    """Number of tokens, V."""
    sha256: str
    """`Vocabulary.sha256`."""

    @property
    def normalization(self) -> Normalization:
        """What was done to text."""
        return Normalization.of_facts(vars(self))

    def facts(self) -> dict[str, Any]:
        """Returns it as files keep it."""
        return {"size": self.size, "sha256": self.sha256, **super().facts()}


def manifest_of(vocab_file: Path) -> Path:
    """Returns the path of a vocabulary's manifest."""
    return vocab_file.with_name(vocab_file.name + SUFFIX)


def recorded_normalization(vocabulary: Vocabulary, vocab_file: Path) -> Normalization | None:
    """Returns what stands beside a vocabulary; None if it has no manifest.

    Raises:
        UserError: the manifest is damaged, or of another vocabulary.
    """
    path = manifest_of(vocab_file)
    if not path.exists():
        return None
    fix = f"restore both, or remove {path.name} if the vocabulary is another program's."
    found = strict_json.read(path, Tokenization, most=_MOST_BYTES, fix=fix)
    if (found.size, found.sha256) != (vocabulary.size, vocabulary.sha256):
        raise UserError(f"{path} is of another vocabulary ({found.size} entries, SHA-256 "
                        f"{found.sha256[:12]}...) than {vocab_file} ({vocabulary.size}, "
                        f"{vocabulary.sha256[:12]}...); {fix}")
    return found.normalization
