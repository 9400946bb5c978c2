"""The texts that are answered: real sentences as they come, or words for a number of tokens."""

import itertools
import pathlib
from collections.abc import Sequence

import tensorflow as tf

from electra_tf.platform.errors import UserError
from electra_tf.tasks import glue
from electra_tf.text.tokenizer import Tokenizer

SPECIAL = 2
"""[CLS] and [SEP]."""


def sentences(data_dir: pathlib.Path) -> list[str]:
    """Returns SST-2's sentences for validation, in the file's order: whole ones, unlike training's.

    Raises:
        UserError: there is no such file, or a damaged one.
    """
    examples = glue.read_split(glue.TASKS["sst2"], data_dir, "dev")
    return [example.texts[0].strip() for example in examples]


def first(given: Sequence[str], count: int) -> list[str]:
    """Returns so many texts, from the beginning again if there are fewer."""
    return list(itertools.islice(itertools.cycle(given), count))


def cut(given: Sequence[str], tokenizer: Tokenizer, *, tokens: int, count: int) -> list[str]:
    """Returns texts of one length: the sentences' words in their order, those of a single piece.

    Args:
        given: sentences with spaces between words.
        tokenizer: counts word pieces.
        tokens: of every text, [CLS] and [SEP] included.
        count: of texts.

    Raises:
        UserError: no word is a single piece.
    """
    words = [word for sentence in given for word in sentence.split()]
    pieces = tokenizer.tokenize(tf.constant(words)).row_lengths().numpy()
    whole = [word for word, size in zip(words, pieces, strict=True) if size == 1]
    if not whole:
        raise UserError("no word of the sentences is in the vocabulary; give the --vocab_file that "
                        "fits the language of --data_dir.")
    endless = itertools.cycle(whole)
    return [" ".join(itertools.islice(endless, tokens - SPECIAL)) for _ in range(count)]


def lengths(texts: Sequence[str], tokenizer: Tokenizer) -> list[int]:
    """Returns the numbers of tokens, [CLS] and [SEP] included."""
    return (tokenizer.tokenize(tf.constant(texts)).row_lengths() + SPECIAL).numpy().tolist()
