"""What is kept beside a vocabulary: which one it is, and how text is made ready for it.

`vocab.txt` holds tokens alone, so the normalization that they were learned under stands in
`vocab.txt.manifest.json`. A vocabulary without that file, as BERT's, is read as its user says.
"""

import dataclasses
import json

from electra_tf.platform import atomic_file, strict_json
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.text.normalization import UNCASED, Normalization
from electra_tf.text.vocabulary import Vocabulary

SUFFIX = ".manifest.json"
_MOST_BYTES = 1 << 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tokenization:
    """The vocabulary and how text was made ready for it."""

    __pydantic_config__ = strict_json.STRICT

    size: int
    """Number of tokens, V."""
    sha256: str
    """`Vocabulary.sha256`."""
    lower_case: bool
    strip_accents: bool
    nfc: bool = strict_json.added(False)

    def __post_init__(self):
        self.normalization  # noqa: B018 - raises if the three contradict each other.

    @classmethod
    def of(cls, vocabulary: Vocabulary, normalization: Normalization) -> "Tokenization":
        """Returns both as one."""
        return cls(size=vocabulary.size, sha256=vocabulary.sha256, **normalization.facts())

    @property
    def normalization(self) -> Normalization:
        """What was done to text."""
        return Normalization.of_facts(dataclasses.asdict(self))

    def facts(self) -> dict[str, int | str | bool]:
        """Returns it as files keep it."""
        return {"size": self.size, "sha256": self.sha256, **self.normalization.facts()}


def manifest_of(vocab_file: Path) -> Path:
    """Returns the path of a vocabulary's manifest."""
    return vocab_file.with_name(vocab_file.name + SUFFIX)


def save(vocabulary: Vocabulary, normalization: Normalization, vocab_file: Path) -> None:
    """Writes a vocabulary and its manifest; raises UserError if it can't.

    The manifest comes first: whatever interrupts, a vocabulary is never read in another way.
    """
    content = json.dumps(Tokenization.of(vocabulary, normalization).facts(), indent=1) + "\n"
    atomic_file.write_atomically(manifest_of(vocab_file), content.encode())
    vocabulary.save(vocab_file)


def recorded_normalization(vocabulary: Vocabulary, vocab_file: Path) -> Normalization | None:
    """Returns what stands beside a vocabulary; None if nothing does.

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


def normalization_for(vocabulary: Vocabulary, vocab_file: Path, asked: Normalization | None
                      ) -> Normalization:
    """Returns how to read text with a vocabulary.

    Args:
        vocabulary: from the file.
        vocab_file: with or without a manifest beside it.
        asked: by the user; None for the manifest's, or without one BERT's uncased.

    Raises:
        UserError: as `recorded_normalization`; or the manifest says otherwise than is asked.
    """
    recorded = recorded_normalization(vocabulary, vocab_file)
    if recorded is not None and asked not in (None, recorded):
        raise UserError(f"{vocab_file} was learned with normalization {recorded}, not {asked}: "
                        "leave the flag out, or learn another vocabulary.")
    return recorded or asked or UNCASED
