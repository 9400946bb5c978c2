"""How text becomes token ids: the vocabulary and the normalization as one value, and its files.

`vocab.txt` holds tokens only; `vocab.txt.manifest.json` holds the normalization that they were
learned with. The user chooses it for a vocabulary without that file, such as BERT's.
A new option is a field and a mode of `Normalization`, and a step in `tokenizer.WordSplitter`.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from absl import flags

from electra_tf.core import atomic_file, storage, strict_json
from electra_tf.core.errors import UserError
from electra_tf.core.settings import require_one_of
from electra_tf.core.storage import Path
from electra_tf.text.vocabulary import CONTINUATION, MAX_WORD_CHARACTERS, Vocabulary

SUFFIX = ".manifest.json"
VOCABULARY_FACT = "vocabulary"  # Name of the vocabulary's digest among the facts of a run.


class Normalization(strict_json.Object):
    """Changes that `text.tokenizer` makes to text before it is cut into words."""

    lower_case: bool = True  # Lower-case the text first.
    strip_accents: bool = True
    """Decompose characters (NFD) and drop their accents. This also drops the vowel signs of Indic
    scripts and Thai, and decomposes Korean syllables."""
    nfc: bool = False
    """Compose characters (NFC), and cut words after 100 characters instead of reading long ones as
    [UNK]."""

    max_word_characters: int = MAX_WORD_CHARACTERS
    """Longer words become [UNK], except with `nfc`. The tokenizers library's default is 100."""
    final_sigma: bool = True
    """Lower-case a capital sigma at a word's end to ς, not σ; the tokenizers library doesn't."""
    literal_tokens: tuple[str, ...] = ()
    """Tokens that are searched for in the text as it is, before all other changes."""
    normalized_tokens: tuple[str, ...] = ()
    """Tokens that are searched for in the changed text, also inside words."""

    def __post_init__(self):
        for name in ("literal_tokens", "normalized_tokens"):  # JSON has lists.
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if self.nfc and self.strip_accents:
            raise ValueError("strip_accents can't be True with nfc.")
        if not 1 <= self.max_word_characters < 1000:
            raise ValueError("max_word_characters must be in [1, 999].")

    @classmethod
    def of(cls, lower_case: bool | None = None, strip_accents: bool | None = None
           ) -> "Normalization":
        """Returns one that by default lower-cases, and strips accents if it lower-cases."""
        lower = lower_case is not False
        return cls(lower_case=lower,
                   strip_accents=lower if strip_accents is None else strip_accents)

    @staticmethod
    def from_dict(saved: Mapping[str, Any]) -> "Normalization":
        """Returns the value whose `to_dict` are among those of a file."""
        return Normalization(**{name: saved[name] for name in FACTS if name in saved})

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields by name, as files keep them; options such as `nfc` if not default."""
        values = {name: getattr(self, name) for name in FACTS}
        return {name: list(value) if isinstance(value, tuple) else value
                for name, value in values.items()
                if name in NEEDED_FACTS or value != getattr(UNCASED, name)}

    def same_letters(self, other: "Normalization") -> bool:
        """Returns True if both give equal letters, apart from final sigmas and long words."""
        return all(getattr(self, name) == getattr(other, name) for name in (*NEEDED_FACTS, "nfc"))

    def __str__(self) -> str:
        """Returns the name of the mode, if it has one, and the options that the mode leaves out."""
        mode = [name for name, mode in MODES.items() if mode.same_letters(self)]
        return ", ".join(mode + [f"{name}={value}" for name, value in self.to_dict().items()
                                 if not mode or name not in (*NEEDED_FACTS, "nfc")])


FACTS = tuple(field.name for field in dataclasses.fields(Normalization))
NEEDED_FACTS = ("lower_case", "strip_accents")  # Names of the fields that every file has.
UNCASED = Normalization()
NFC = Normalization(lower_case=False, strip_accents=False, nfc=True)
AUTO = "auto"  # Value of --normalization that takes the vocabulary's.
MODES = {"bert_uncased": UNCASED, "bert_cased": Normalization.of(False),
         "lower_case": Normalization(strip_accents=False), "nfc": NFC}


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextSettings:
    """A vocabulary, and the normalization of text before it is split into its tokens."""

    vocabulary: Vocabulary
    normalization: Normalization = UNCASED

    @classmethod
    def load(cls, vocab_file: Path, normalization: Normalization | None = None,
             cased_fix: str = "Give --normalization, such as bert_cased.", **fix: str
             ) -> "TextSettings":
        """Reads a vocabulary, with or without a manifest beside it, or raises `UserError`.

        Without `normalization`, the manifest's normalization applies, or BERT's uncased one, which
        `UserError` with `cased_fix` refuses for a vocabulary with capitals.
        """
        vocabulary = Vocabulary.load(vocab_file, **fix)
        recorded = recorded_normalization(vocabulary, vocab_file)
        if recorded is not None and normalization not in (None, recorded):
            raise UserError(f"{vocab_file} was learned with normalization {recorded}, not "
                            f"{normalization}: leave the flag out, or learn another vocabulary.")
        if recorded is None and normalization is None and (problem := capitals_in(vocabulary)):
            raise UserError(f"{vocab_file} {problem}. {cased_fix}")
        return cls(vocabulary=vocabulary, normalization=recorded or normalization or UNCASED)

    @property
    def tokenization(self) -> "Tokenization":
        """The facts that records keep."""
        return Tokenization(size=self.vocabulary.size, sha256=self.vocabulary.sha256,
                            **dataclasses.asdict(self.normalization))

    def to_dict(self) -> dict[str, Any]:
        """Returns the facts that a run keeps beside the vocabulary itself."""
        return {VOCABULARY_FACT: self.vocabulary.sha256} | self.normalization.to_dict()

    def save(self, vocab_file: Path) -> None:
        """Writes the manifest before the vocabulary, which therefore always has a manifest."""
        atomic_file.write_json(manifest_of(vocab_file), self.tokenization.to_dict())
        self.vocabulary.save(vocab_file)


def capitals_in(vocabulary: Vocabulary) -> str:
    """Describes tokens with capitals, if over a hundredth begins with one; otherwise ""."""
    capitals = [token for token in vocabulary.tokens
                if token.removeprefix(CONTINUATION)[:1].isupper()]
    if len(capitals) <= vocabulary.size / 100:
        return ""
    return (f"has {len(capitals):,} tokens with capitals, such as {capitals[0]!r}, and no file "
            "says that text isn't lower-cased")


class Tokenization(Normalization):
    """The facts of `TextSettings` that files keep."""

    lower_case: bool = dataclasses.field()  # Without the defaults of `Normalization`.
    strip_accents: bool = dataclasses.field()
    size: int  # Number of tokens, V.
    sha256: str  # `Vocabulary.sha256`.

    @property
    def normalization(self) -> Normalization:
        """The fields of the normalization."""
        return Normalization.from_dict(vars(self))

    def to_dict(self) -> dict[str, Any]:
        """Returns the value as files keep it."""
        return {"size": self.size, "sha256": self.sha256, **super().to_dict()}


def manifest_of(vocab_file: Path) -> Path:
    """Returns the path of a vocabulary's manifest."""
    return vocab_file.with_name(vocab_file.name + SUFFIX)


def recorded_normalization(vocabulary: Vocabulary, vocab_file: Path) -> Normalization | None:
    """Returns the manifest's normalization, or None; `UserError` if damaged or of another one."""
    path = manifest_of(vocab_file)
    if not path.exists():
        return None
    fix = f"restore both, or remove {path.name} if the vocabulary is another program's."
    known = strict_json.read(path, Tokenization, fix=fix)
    if (known.size, known.sha256) != (vocabulary.size, vocabulary.sha256):
        raise UserError(f"{path} is of another vocabulary ({known.size} entries, SHA-256 "
                        f"{known.sha256[:12]}...) than {vocab_file} ({vocabulary.size}, "
                        f"{vocabulary.sha256[:12]}...); {fix}")
    return known.normalization


def text_settings_from_flags(values: flags.FlagValues) -> TextSettings:
    """Reads the files of --vocab_file and --normalization; raises as `TextSettings.load`."""
    return TextSettings.load(storage.path(values.vocab_file), normalization_from_flags(values),
                             fix="build one with `python -m data_prep.build_vocab`.")


def normalization_from_flags(values: flags.FlagValues) -> Normalization | None:
    """Returns the normalization of --normalization, None for auto, or raises `UserError`."""
    require_one_of((AUTO, *MODES), "--normalization", values.normalization)
    return MODES.get(values.normalization)
