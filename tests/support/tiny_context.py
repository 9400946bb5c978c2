"""What an objective may know of records that aren't there."""

import numpy as np

from electra_tf.modeling.masking import SpecialTokens, TokenKinds
from electra_tf.objectives.pretraining import ObjectiveContext


def of(*, vocab_size: int, pad: int = 0, cls: int = 2, sep: int = 3, mask: int = 4,
       continues: tuple[int, ...] = ()) -> ObjectiveContext:
    """Every entry is as frequent as its id; those of `continues` continue words."""
    continues_word = np.zeros(vocab_size, bool)
    continues_word[list(continues)] = True
    kinds = TokenKinds(SpecialTokens(pad=pad, cls=cls, sep=sep, mask=mask), vocab_size,
                       continues_word)
    return ObjectiveContext(kinds=kinds, token_counts=lambda: np.arange(vocab_size))
