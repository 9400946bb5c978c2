"""The WordPiece vocabulary: one token per line, whose number from 0 is the id."""

import dataclasses
import functools
import hashlib
import re

import numpy as np

from electra_tf.core import atomic_file, storage
from electra_tf.core.errors import UserError, shown
from electra_tf.core.storage import MIB, Path, read_bytes

PAD, UNK, CLS, SEP, MASK = SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_NOT_IN_A_LINE = re.compile(r"[\x00\t\n\r]|^ | $")
"""Characters that a line can't hold or that `load` drops; a tab shows that the file is a table."""
VOCABULARY_FILE = "vocab.txt"  # Its name in a directory of records or of a run.
CONTINUATION = "##"
"""Begins every piece that continues a word."""
MAX_WORD_CHARACTERS = 200
"""Longer words become [UNK], as in the reference (ELECTRA's model/tokenization.py)."""


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """Tokens by id; missing special tokens and duplicates raise `UserError`.

    A token may hold any character that a line can, such as U+2028, even if no text gives it. Empty
    tokens and line ends, empty lines of a file, become distinct tokens that no text gives.
    """

    tokens: tuple[str, ...]
    source: str = dataclasses.field(default="the vocabulary", compare=False)
    """The file, for messages."""

    def __post_init__(self):
        # Empty lines keep the ids of later ones.
        object.__setattr__(self, "tokens", tuple(
            token if token.strip(" \t\r\n") else f"[empty line {line}]"
            for line, token in enumerate(self.tokens, start=1)))

        # Every line holds one token that no other line holds.
        first_line: dict[str, int] = {}
        for line, token in enumerate(self.tokens, start=1):
            if _NOT_IN_A_LINE.search(token):
                raise UserError(f"{self.source}: line {line} must hold one token, without tabs and "
                                f"other control characters. Received: {shown(token)}; name a "
                                "vocabulary in UTF-8.")
            if token in first_line:
                # Google's code and transformers give the token its last id.
                first = first_line[token]
                raise UserError(f"{self.source}: {shown(token)} is in line {first} and again in "
                                f"line {line}, whose id other programs use; write another token in "
                                f"line {first}, such as [unused-{first}], to keep all ids.")
            first_line[token] = line
        missing = [token for token in SPECIAL_TOKENS if token not in first_line]
        if missing:
            raise UserError(f"{self.source}: no line holds {' or '.join(missing)}; name a whole "
                            "vocabulary, or copy that of the model again.")

    @classmethod
    def load(cls, path: str | Path, fix: str = (
            "copy the vocab.txt or tokenizer.json with which the model was trained: another "
            "vocabulary gives its tokens other ids.")) -> "Vocabulary":
        """Reads `vocab.txt`, UTF-8 with one token per line, without empty lines at its end.

        Raises `UserError`, which ends with `fix` for a missing file.
        """
        try:
            content = read_bytes(storage.path(path), 64 * MIB, absent=(
                f"cannot read the vocabulary {path}: no such file; {fix}")).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise UserError(f"{path} is not UTF-8: bad byte at offset {error.start}; convert the "
                            "vocabulary to UTF-8.") from error
        if str(path).endswith(".json"):
            raise UserError(f"{path} is JSON; name what `python -c \"import json; v = json.load("
                            f"open('{path}'))['model']['vocab']; print(*sorted(v, key=v.get), "
                            "sep='\\n')\" > vocab.txt` writes.")
        lines = content.rstrip(" \t\r\n").split("\n")
        return cls(tuple(line.strip(" \t\r") for line in lines), source=str(path))

    def save(self, path: str | Path) -> None:
        """Writes the file that `load` reads, atomically."""
        atomic_file.write_atomically(storage.path(path), self._content)

    @functools.cached_property
    def sha256(self) -> str:
        """Hexadecimal digest of the tokens, each followed by a newline, as UTF-8."""
        return hashlib.sha256(self._content).hexdigest()

    size = property(lambda self: len(self.tokens), doc="Number of tokens, V.")
    pad_id = property(lambda self: self.ids[PAD], doc="Id of [PAD].")
    unk_id = property(lambda self: self.ids[UNK], doc="Id of [UNK].")
    cls_id = property(lambda self: self.ids[CLS], doc="Id of [CLS].")
    sep_id = property(lambda self: self.ids[SEP], doc="Id of [SEP].")
    mask_id = property(lambda self: self.ids[MASK], doc="Id of [MASK].")

    @functools.cached_property
    def ids(self) -> dict[str, int]:
        """Token -> id."""
        return {token: index for index, token in enumerate(self.tokens)}

    @functools.cached_property
    def continues(self) -> np.ndarray:
        """True for tokens that continue a word ("##..."): bool [V]."""
        return np.array([len(token) > len(CONTINUATION) and token.startswith(CONTINUATION)
                         for token in self.tokens])

    @property
    def _content(self) -> bytes:
        return "".join(f"{token}\n" for token in self.tokens).encode()
