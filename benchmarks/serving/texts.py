"""The texts that are answered: real sentences as they come, or cut to a number of tokens."""

import pathlib
from collections.abc import Iterator, Sequence

import tensorflow as tf

from electra_tf.platform.errors import UserError
from electra_tf.tasks import glue, glue_files
from electra_tf.text.tokenizer import Tokenizer

SPECIAL = 2
"""[CLS] and [SEP]."""


def sentences(data_dir: pathlib.Path) -> list[str]:
    """Returns SST-2's sentences for validation, in the file's order: whole ones, unlike training's.

    Raises:
        UserError: there is no such file, or a damaged one.
    """
    examples = glue_files.read_split(glue.TASKS["sst2"], data_dir, "dev")
    return [example.texts[0].strip() for example in examples]


def first(given: Sequence[str], count: int) -> list[str]:
    """Returns so many texts, from the beginning again if there are fewer."""
    return [given[index % len(given)] for index in range(count)]


def cut(given: Sequence[str], tokenizer: Tokenizer, *, tokens: int, count: int) -> list[str]:
    """Strings sentences together and cuts texts that are all of one length.

    Args:
        given: sentences with spaces between words.
        tokenizer: counts word pieces.
        tokens: of every text, [CLS] and [SEP] included.
        count: of texts.

    Raises:
        UserError: a text can't be made to have this length.
    """
    words = [word for sentence in given for word in sentence.split()]
    pieces = tokenizer.tokenize(tf.constant(words)).row_lengths().numpy().tolist()
    endless = _repeated(list(zip(words, pieces, strict=True)))
    texts = [_text(endless, tokens - SPECIAL) for _ in range(count)]
    if (wrong := set(lengths(texts, tokenizer)) - {tokens}):
        raise UserError(f"texts of {tokens} tokens can't be cut from these sentences: some have "
                        f"{min(wrong)}; choose another length.")
    return texts


def lengths(texts: Sequence[str], tokenizer: Tokenizer) -> list[int]:
    """Returns the numbers of tokens, [CLS] and [SEP] included."""
    return (tokenizer.tokenize(tf.constant(texts)).row_lengths() + SPECIAL).numpy().tolist()


def _text(words: Iterator[tuple[str, int]], pieces: int) -> str:
    """Takes words as long as they fit; one that is too long for the rest is passed over."""
    taken, missing = [], pieces
    while missing:
        word, size = next(words)
        if 0 < size <= missing:
            taken.append(word)
            missing -= size
    return " ".join(taken)


def _repeated(words: list[tuple[str, int]]) -> Iterator[tuple[str, int]]:
    if not any(size == 1 for _, size in words):
        raise UserError("no word of the sentences is in the vocabulary; give the --vocab_file that "
                        "fits the language of --data_dir.")
    while True:
        yield from words
