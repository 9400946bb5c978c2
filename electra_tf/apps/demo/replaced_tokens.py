"""Masks a sentence, fills it in and detects replaced tokens (ELECTRA, section 3.1).

These are the steps of training on one sentence, with one difference. Here every selected token
becomes [MASK]; in training, the generator reads some of them unchanged.
"""

import dataclasses
from typing import Annotated, Any

import numpy as np
import tensorflow as tf
from pydantic import Field

from electra_tf.formats.pretrained import Pretrained
from electra_tf.modeling.corruption import at_temperature, distribution, sample
from electra_tf.modeling.fused import inference_mode
from electra_tf.modeling.randomness import Randomness
from electra_tf.platform import strict_json
from electra_tf.platform.errors import UserError
from electra_tf.reporting import samples
from electra_tf.text.rows import RowEncoder, encode_texts

_MOST_CANDIDATES = 8
"""Largest number of candidates for a masked position."""
_LIKELIEST = 64
"""Number of likeliest tokens from which the candidates are selected."""
_LEAST = 0.05, 3
"""Candidates are words only if at least 3 have 0.05 of the likeliest token's probability."""
EXAMPLES = (
    "The first part of the book was written in the city, and the second in a small house near the "
    "river.",
    "This method returns a list of all the names in the file, and raises an error if there is no "
    "such file.",
    "He was born in the north of the country and worked for many years as a teacher in the "
    "capital.",
    "She opened the door, looked at the old man for a long time, and said that she had never been "
    "there before.")
_SEEDS = range(1, 13)
_LENGTH_STEP = 8
"""Rows are padded to a multiple of it, and one graph is built for each length."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Question:
    """A sentence with its masking rate, sampling temperature and seed."""

    __pydantic_config__ = strict_json.STRICT

    sentence: str
    mask_rate: Annotated[float, Field(ge=0.01, le=0.9)]
    """Fraction of the tokens that are masked; at least one token is."""
    temperature: Annotated[float, Field(ge=0.01, le=10.0)]
    """T of softmax(logits / T)."""
    seed: Annotated[int, Field(ge=0, lt=2**32)]
    """Seed of the masked positions and of the sampled tokens."""


class ReplacedTokenDetection:
    """The generator and the discriminator of a pre-training run, and the steps between them."""

    def __init__(self, networks: Pretrained):
        """Builds both networks; `UserError` if one of them or its output layer is missing."""
        self.source = networks.source
        self._vocabulary = networks.text.vocabulary
        self.longest = networks.model.max_position_embeddings - 2
        """Largest number of tokens of a sentence."""
        self._encoder = RowEncoder(networks.text, max_length=1 << 20)
        if networks.has_energies or not networks.has_both:
            raise UserError(f"{networks.source} hasn't a generator and a discriminator as ELECTRA "
                            "trains them; name a run of objective.name=electra, or a conversion "
                            "of both networks.")
        self._model = networks.build()
        self._steps = tf.function(self._compute, autograph=False)

    def answer(self, question: Question) -> dict[str, Any]:
        """Masks a sentence, fills it in and scores it; equal questions have equal answers.

        Another temperature keeps the masked positions; a higher rate adds positions. A sentence
        without tokens or with too many is refused with a `UserError`.

        Returns:
            "summary", the counts as a line, and "tokens" without [CLS] and [SEP]. Each token has
            "original" and "corrupted", WordPieces before and after; "replaced_probability" of the
            discriminator; "outcome", one of `samples.Outcome`; and "filling", None for tokens that
            were not masked. A filling is the generator's distribution at this temperature:
            "candidates", the likeliest first, "original" and "sampled", each a token and its
            probability; "left_out", the probability of likelier tokens that are no candidates.
        """
        ids = encode_texts([(question.sentence,)], self._encoder)[0][0].ids
        count = len(ids) - 2
        if not count:
            raise UserError("the sentence has no words; write some.")
        if count > self.longest:
            raise UserError(f"the sentence has {count:,} tokens and the model reads "
                            f"{self.longest:,} at most; shorten it.")
        inside = slice(1, count + 1)
        length = min(-(-len(ids) // _LENGTH_STEP) * _LENGTH_STEP, self.longest + 2)
        padded = np.full([1, length], self._vocabulary.pad_id, np.int32)
        padded[0, :len(ids)] = ids
        selected = np.zeros([1, length], bool)
        words = self._vocabulary.tokens
        selected[0, inside] = positions(
            np.array([_is_word(words[index]) for index in ids[inside]]), question)
        with inference_mode():
            found = self._steps(tf.constant(padded), tf.constant(selected),
                                _uniforms(question.seed, length),
                                tf.constant(question.temperature, tf.float32))
        found = {name: value.numpy()[0, inside] for name, value in found.items()}
        corruption = samples.Corruption(
            original=[words[index] for index in ids[inside]],
            corrupted=[words[index] for index in found["written"]],
            selected=selected[0, inside].tolist(),
            replaced_probability=found["replaced_probability"].tolist())
        return {"summary": samples.summary(corruption), "tokens": [
            {"original": before, "corrupted": after, "replaced_probability": probability,
             "outcome": outcome, "filling": {
                 **_candidates([words[index] for index in found["best_ids"][place]],
                               found["best"][place]),
                 "original": _candidate(before, found["original"][place]),
                 "sampled": _candidate(after, found["sampled"][place]),
             } if corruption.selected[place] else None}
            for place, (before, after, probability, outcome) in enumerate(corruption.tokens())]}

    def tokens(self, sentence: str) -> list[str]:
        """Returns the tokens of a sentence, without [CLS] and [SEP]."""
        ids = encode_texts([(sentence,)], self._encoder)[0][0].ids
        return [self._vocabulary.tokens[index] for index in ids[1:-1]]

    def _compute(self, ids: tf.Tensor, selected: tf.Tensor, uniforms: tf.Tensor,
                 temperature: tf.Tensor) -> dict[str, tf.Tensor]:
        """Computes all steps at every position, so that one graph serves all masking rates.

        Takes int32 [1, L], bool [1, L], float32 [L] in [0, 1) and float32 []; returns [1, L] or
        [1, L, 64] by name.
        """
        length = ids.shape[1]
        valid, segments = ids != self._vocabulary.pad_id, tf.zeros_like(ids)
        logits = self._model.generator(
            tf.where(selected, self._vocabulary.mask_id, ids), segments, valid,
            tf.range(length)[tf.newaxis])
        softmax = at_temperature(distribution(logits), temperature)
        sampled = sample(softmax, uniforms)
        probabilities = tf.nn.softmax(tf.cast(softmax.logits, tf.float32))
        best, best_ids = tf.math.top_k(
            probabilities, min(_LIKELIEST, self._vocabulary.size))
        written = tf.where(selected, sampled, ids)
        judged = self._model.discriminator(written, segments, valid)
        return {
            "written": written, "replaced_probability": tf.sigmoid(judged),
            "best_ids": best_ids[tf.newaxis], "best": best[tf.newaxis],
            "original": tf.gather(probabilities, ids[0], batch_dims=1)[tf.newaxis],
            "sampled": tf.gather(probabilities, sampled, batch_dims=1)[tf.newaxis]}


def good_example(detection: ReplacedTokenDetection, rate: float = 0.25) -> Question:
    """Returns the example that fits a run's vocabulary best, with a draw that shows its networks.

    The sentence has the fewest tokens for its words and the fewest [UNK]. The draw has restored
    and detected tokens, and few missed ones and false alarms.
    """
    def cost(sentence: str) -> float:
        tokens = detection.tokens(sentence)
        return (len(tokens) + 9 * tokens.count("[UNK]")) / len(sentence.split())

    def variety(question: Question) -> float:
        found = [token["outcome"] for token in detection.answer(question)["tokens"]]
        return (min(found.count("restored"), 2) + min(found.count("detected"), 3)
                - 0.5 * (found.count("missed") + found.count("false alarm")))

    fitting = [each for each in EXAMPLES if len(detection.tokens(each)) <= detection.longest]
    sentence = min(fitting or [EXAMPLES[0]], key=cost)
    questions = [Question(sentence=sentence, mask_rate=rate, temperature=1.0, seed=seed)
                 for seed in _SEEDS]
    return max(questions, key=variety) if fitting else questions[0]


def positions(words: np.ndarray, question: Question) -> np.ndarray:
    """Returns bool [n], which of n tokens are masked: round(rate n), at least one.

    Words, bool [n], are masked before punctuation, numbers and pieces of words. A higher rate masks
    more tokens beside those of a lower one.
    """
    order = np.random.default_rng(question.seed).permutation(len(words))
    order = order[np.argsort(~words[order], kind="stable")]
    chosen = np.zeros(len(words), bool)
    chosen[order[:max(1, round(question.mask_rate * len(words)))]] = True
    return chosen


def _is_word(token: str) -> bool:
    return token[0].isalpha()


def _candidates(tokens: list[str], shares: np.ndarray) -> dict[str, Any]:
    """Returns "candidates", only words if enough of them are likely, and "left_out"."""
    least, count = _LEAST
    pairs = list(zip(tokens, shares, strict=True))
    words = [pair for pair in pairs if _is_word(pair[0]) and pair[1] >= least * shares[0]]
    shown = (words if len(words) >= count else pairs)[:_MOST_CANDIDATES]
    left_out = sum(share for pair in pairs if pair not in shown and pair[1] > shown[-1][1]
                 for share in pair[1:])
    return {"candidates": [_candidate(*pair) for pair in shown], "left_out": float(left_out)}


def _candidate(token: str, probability: np.floating) -> dict[str, Any]:
    return {"token": token, "probability": float(probability)}


def _uniforms(seed: int, length: int) -> tf.Tensor:
    """Returns float32 [L] in [0, 1); the value of a position does not depend on L."""
    zero = tf.constant(0, tf.int64)
    return Randomness(seed=seed, step=zero, first_example=zero).uniform("sampling", 1, length)[0]
