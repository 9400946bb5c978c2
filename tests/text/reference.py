"""The Python tokenizer that ours must equal, and vocabularies to compare them with.

Model Garden's copy of BERT's tokenizer, with the two settings in which ELECTRA's own differs from
it: words end at 200 characters, and the whole Unicode class C is dropped, not Cc and Cf alone.
"""

import collections
import pathlib
import random
import unicodedata
from collections.abc import Iterable
from unittest import mock

from official.nlp.tools import tokenization

from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary


class KeepAccents(tokenization.BasicTokenizer):
    def _run_strip_accents(self, text):
        return text


class Reference:
    def __init__(self, vocabulary: Vocabulary, directory: pathlib.Path, lower_case: bool = True,
                 strip_accents: bool | None = None):
        file = directory / "reference_vocab.txt"
        vocabulary.save(file)
        self._full = tokenization.FullTokenizer(str(file), do_lower_case=lower_case)
        self._full.wordpiece_tokenizer.max_input_chars_per_word = 200
        if lower_case and strip_accents is False:
            self._full.basic_tokenizer = KeepAccents()

    def words(self, text: str) -> list[str]:
        with mock.patch.object(tokenization, "_is_control", _is_control):
            return self._full.basic_tokenizer.tokenize(text)

    def ids(self, text: str) -> list[int]:
        with mock.patch.object(tokenization, "_is_control", _is_control):
            return self._full.convert_tokens_to_ids(self._full.tokenize(text))


def vocabulary_of(texts: Iterable[str], directory: pathlib.Path, seed: int = 0) -> Vocabulary:
    """Returns a vocabulary that knows most of the texts' pieces, but not all."""
    generator = random.Random(seed)
    splitters = [Reference(Vocabulary((*SPECIAL_TOKENS, "a")), directory, *options)
                 for options in ((True, None), (False, None), (True, False))]
    counts = collections.Counter(
        word for text in texts for splitter in splitters for word in splitter.words(text))
    pieces = set()
    for word, _ in counts.most_common(6000):
        if len(word) <= 20 and generator.random() < 0.5:
            pieces.add(word)
        for start in range(min(len(word), 12)):
            end = start + generator.randint(1, 4)
            if generator.random() < 0.9:
                pieces.add(("##" if start else "") + word[start:end])
    pieces = sorted(piece for piece in pieces if piece.strip() == piece and "\n" not in piece)
    return Vocabulary((*SPECIAL_TOKENS, *pieces))


def _is_control(character: str) -> bool:
    return character not in "\t\n\r" and unicodedata.category(character).startswith("C")
