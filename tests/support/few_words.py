"""A vocabulary of few words."""

from electra_tf.text.normalization import TextSettings
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary

WORDS = ("the", "cafe", "##s", "won", "in", "who", "?", "(", "1999", ")", ".", "a", "b", "##c")
VOCABULARY = Vocabulary((*SPECIAL_TOKENS, *WORDS))
TEXT = TextSettings(vocabulary=VOCABULARY)
