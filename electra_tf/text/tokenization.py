"""How text becomes token ids: the vocabulary and the normalization as one value, and its files.

`vocab.txt` holds tokens alone, so the normalization that they were learned under stands in
`vocab.txt.manifest.json`. A vocabulary without that file, as BERT's, is read as its user says.
A new option is a field of `Normalization` and a step in `tokenizer.WordSplitter`.
"""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from absl import flags

from electra_tf.platform import atomic_file, storage, strict_json
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import MIB, Path
from electra_tf.text.vocabulary import Vocabulary

SUFFIX = ".manifest.json"
VOCABULARY_FACT = "vocabulary"
"""Name of the vocabulary's digest among the facts of a run."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Normalization:
    """Changes that `text.tokenizer` makes to text before it is cut into words."""

    __pydantic_config__ = strict_json.STRICT

    lower_case: bool = True
    """Lower-case the text first."""
    strip_accents: bool = True
    """Decompose characters (NFD) and drop their accents, and with them the vowel signs of Indic
    scripts and Thai; Korean syllables are taken apart."""
    nfc: bool = False
    """Compose characters (NFC); and no word is [UNK] for its length: what is written without spaces
    is cut after 100 characters each."""

    def __post_init__(self):
        if self.nfc and self.strip_accents:
            raise ValueError("strip_accents can't be True with nfc.")

    @classmethod
    def of(cls, lower_case: bool | None = None, strip_accents: bool | None = None
           ) -> "Normalization":
        """Returns what is asked for; None lower-cases, and strips accents if it lower-cases."""
        lower = True if lower_case is None else lower_case
        return cls(lower_case=lower,
                   strip_accents=lower if strip_accents is None else strip_accents)

    @classmethod
    def of_facts(cls, saved: Mapping[str, Any]) -> "Normalization":
        """Returns the value whose `facts` are among those of a file."""
        return Normalization(
            **{name: saved[name] for name in FACTS if name in saved or name in NEEDED_FACTS})

    def facts(self) -> dict[str, Any]:
        """Returns the fields by name, as all files keep them: `nfc` only if it is on."""
        return {name: getattr(self, name) for name in FACTS
                if getattr(self, name) or name in NEEDED_FACTS}

    def __str__(self) -> str:
        """Returns the name of the mode, or the fields where it has none."""
        return next((name for name, mode in MODES.items() if mode == self), ", ".join(
            f"{name}={value}" for name, value in self.facts().items()))


FACTS = tuple(field.name for field in dataclasses.fields(Normalization))
NEEDED_FACTS = ("lower_case", "strip_accents")
"""Names of the fields that every file has."""
UNCASED = Normalization()
"""Normalization of BERT's uncased models."""
NFC = Normalization(lower_case=False, strip_accents=False, nfc=True)
"""Leaves text as it is, but for one way to write each character."""
MODES = {"bert_uncased": UNCASED, "bert_cased": Normalization.of(False), "nfc": NFC}
AUTO = "auto"
FLAGS = ("normalization", "lower_case", "strip_accents")
"""Names of the flags that say how text is read."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextSettings:
    """How text becomes token ids; what all programs pass on."""

    vocabulary: Vocabulary
    normalization: Normalization = UNCASED

    @classmethod
    def load(cls, vocab_file: Path, asked: Normalization | None = None) -> "TextSettings":
        """Reads a vocabulary, with or without a manifest beside it, or refuses it.

        Args:
            vocab_file: one token a line.
            asked: by the user; None for the manifest's, or without one BERT's uncased.
        """
        vocabulary = Vocabulary.load(vocab_file)
        recorded = recorded_normalization(vocabulary, vocab_file)
        if recorded is not None and asked not in (None, recorded):
            raise UserError(f"{vocab_file} was learned with normalization {recorded}, not {asked}: "
                            "leave the flag out, or learn another vocabulary.")
        return cls(vocabulary=vocabulary, normalization=recorded or asked or UNCASED)

    @classmethod
    def of_flags(cls, values: flags.FlagValues) -> "TextSettings":
        """Returns what --vocab_file and `FLAGS` name; raises as `load`."""
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
        """Writes the manifest, then the vocabulary, which never stands there without it."""
        content = json.dumps(self.tokenization.facts(), indent=1) + "\n"
        atomic_file.write_atomically(manifest_of(vocab_file), content.encode())
        self.vocabulary.save(vocab_file)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tokenization(Normalization):
    """What files keep of `TextSettings`: which vocabulary, and the normalization's fields."""

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
    """Returns what stands beside a vocabulary, or None; refuses another vocabulary's manifest."""
    path = manifest_of(vocab_file)
    if not path.exists():
        return None
    fix = f"restore both, or remove {path.name} if the vocabulary is another program's."
    found = strict_json.read(path, Tokenization, most=MIB, fix=fix)
    if (found.size, found.sha256) != (vocabulary.size, vocabulary.sha256):
        raise UserError(f"{path} is of another vocabulary ({found.size} entries, SHA-256 "
                        f"{found.sha256[:12]}...) than {vocab_file} ({vocabulary.size}, "
                        f"{vocabulary.sha256[:12]}...); {fix}")
    return found.normalization


def asked_for(values: flags.FlagValues) -> Normalization | None:
    """Returns what the flags `FLAGS` ask for, None if they leave it open; or refuses them."""
    mode, *fields = (values[name].value for name in FLAGS)
    if mode not in (AUTO, *MODES):
        raise UserError(f"--normalization must be one of {', '.join((AUTO, *MODES))}. "
                        f"Received: {shown(mode)}")
    if set(fields) == {None}:
        return MODES.get(mode)
    if mode != AUTO:
        raise UserError(f"--normalization={mode} decides everything; leave out "
                        f"{' and '.join(f'--{name}' for name in FLAGS[1:])}.")
    return Normalization.of(*fields)
