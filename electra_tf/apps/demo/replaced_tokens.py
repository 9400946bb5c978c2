"""One sentence through both networks: masked, filled in, judged (ELECTRA, section 3.1).

These are the steps of training on one sentence, with one difference: every selected token is hidden
behind [MASK], while training lets the generator read some of them.
"""

import dataclasses
from typing import Annotated, Any

import numpy as np
import tensorflow as tf
from pydantic import Field

from electra_tf.checkpoints.pretrained import Pretrained
from electra_tf.checkpoints.weights import assign_parts
from electra_tf.config.model import Tying
from electra_tf.modeling.corruption import at_temperature, distribution, sample
from electra_tf.modeling.electra import ElectraModel
from electra_tf.modeling.fused import inference_mode
from electra_tf.modeling.randomness import Randomness
from electra_tf.objectives.registry import objective_class
from electra_tf.platform import strict_json
from electra_tf.platform.errors import UserError
from electra_tf.reporting import samples
from electra_tf.tasks.encoding import encode_texts
from electra_tf.text.rows import RowEncoder

MOST_CANDIDATES = 8
"""Candidates that are returned for a masked position."""
_LENGTH_STEP = 8
"""Rows are padded to a multiple of it, and one graph is built for each length."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Question:
    """A sentence, and how it is masked and filled in."""

    __pydantic_config__ = strict_json.STRICT

    sentence: str
    mask_rate: Annotated[float, Field(ge=0.01, le=0.9)]
    """Fraction of the tokens that are masked; at least one token is."""
    temperature: Annotated[float, Field(ge=0.01, le=10.0)]
    """T of softmax(logits / T)."""
    seed: Annotated[int, Field(ge=0, lt=2**32)]
    """Decides which tokens are masked, and what is drawn."""


class ReplacedTokenDetection:
    """The generator and the discriminator of a pre-training run, and the steps between them."""

    def __init__(self, networks: Pretrained):
        """Takes the weights.

        Raises:
            UserError: one of the two networks isn't there, or gives no probabilities.
        """
        self.source = networks.source
        self._vocabulary = networks.text.vocabulary
        self._longest = networks.model.max_position_embeddings
        self._encoder = RowEncoder(networks.text, max_length=1 << 20)
        _require_both(networks)
        self._model = ElectraModel(networks.model, seed=0)
        assign_parts(self._model.variables, networks.weights, networks.source)
        self._steps = tf.function(self._compute, autograph=False)

    def answer(self, question: Question) -> dict[str, Any]:
        """Masks, fills in and judges; equal questions have equal answers.

        Another temperature leaves the masks where they are; a higher rate adds to them.

        Returns:
            "summary", the counts as a line, and "tokens" without [CLS] and [SEP]. Each token has
            "original" and "corrupted", WordPieces before and after; "replaced_probability", the
            discriminator's; "outcome", one of `samples.Outcome`; and "filling", None where the
            token was not masked. A filling is the generator's distribution at this temperature:
            "candidates", the likeliest first, "original" and "sampled", each a token and its
            probability.

        Raises:
            UserError: the sentence has no tokens, or more than the model can read.
        """
        ids = encode_texts([(question.sentence,)], self._encoder)[0].ids
        count = len(ids) - 2
        if not count:
            raise UserError("the sentence has no words; write some.")
        if len(ids) > self._longest:
            raise UserError(f"the sentence has {count:,} tokens and the model reads "
                            f"{self._longest - 2:,} at most; shorten it.")
        inside = slice(1, count + 1)
        length = min(-(-len(ids) // _LENGTH_STEP) * _LENGTH_STEP, self._longest)
        padded = np.full([1, length], self._vocabulary.pad_id, np.int32)
        padded[0, :len(ids)] = ids
        selected = np.zeros([1, length], bool)
        selected[0, inside] = positions(count, question)
        with inference_mode():
            found = self._steps(tf.constant(padded), tf.constant(selected),
                                _uniforms(question.seed, length),
                                tf.constant(question.temperature, tf.float32))
        found = {name: value.numpy()[0, inside] for name, value in found.items()}
        words = self._vocabulary.tokens
        corruption = samples.Corruption(
            original=[words[index] for index in ids[inside]],
            corrupted=[words[index] for index in found["written"]],
            selected=selected[0, inside].tolist(),
            replaced_probability=found["replaced_probability"].tolist())
        return {"summary": samples.summary(corruption), "tokens": [
            {"original": before, "corrupted": after, "replaced_probability": probability,
             "outcome": outcome, "filling": {
                 "candidates": [_candidate(words[index], share) for index, share in zip(
                     found["best_ids"][place], found["best"][place], strict=True)],
                 "original": _candidate(before, found["original"][place]),
                 "sampled": _candidate(after, found["sampled"][place]),
             } if corruption.selected[place] else None}
            for place, (before, after, probability, outcome) in enumerate(corruption.tokens())]}

    def _compute(self, ids: tf.Tensor, selected: tf.Tensor, uniforms: tf.Tensor,
                 temperature: tf.Tensor) -> dict[str, tf.Tensor]:
        """Does all steps at every position, so that one graph serves all rates.

        Args:
            ids: int32 [1, L].
            selected: bool [1, L].
            uniforms: float32 [L], in [0, 1).
            temperature: float32 [].

        Returns:
            By name, all [1, L] or [1, L, 8].
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
            probabilities, min(MOST_CANDIDATES, self._vocabulary.size))
        written = tf.where(selected, sampled, ids)
        judged = self._model.discriminator(written, segments, valid)
        return {
            "written": written, "replaced_probability": tf.sigmoid(judged),
            "best_ids": best_ids[tf.newaxis], "best": best[tf.newaxis],
            "original": tf.gather(probabilities, ids[0], batch_dims=1)[tf.newaxis],
            "sampled": tf.gather(probabilities, sampled, batch_dims=1)[tf.newaxis]}


def positions(count: int, question: Question) -> np.ndarray:
    """Returns bool [n], which of n tokens are masked: round(rate n) of them, one at least.

    A higher rate masks more tokens beside those of a lower one.
    """
    order = np.random.default_rng(question.seed).permutation(count)
    chosen = np.zeros(count, bool)
    chosen[order[:max(1, round(question.mask_rate * count))]] = True
    return chosen


def _candidate(token: str, probability: np.floating) -> dict[str, Any]:
    return {"token": token, "probability": float(probability)}


def _uniforms(seed: int, length: int) -> tf.Tensor:
    """Returns float32 [L]; that of a position doesn't depend on L."""
    zero = tf.constant(0, tf.int64)
    return Randomness(seed=seed, step=zero, first_example=zero).uniform("sampling", 1, length)[0]


def _require_both(networks: Pretrained) -> None:
    """Raises `UserError` unless there are two networks, each with its output layer."""
    parts = {name.split("/")[0] for name in networks.weights}
    needed = {"generator_predictions", "discriminator_predictions"}
    if networks.model.tying is not Tying.EVERYTHING:
        needed.add("generator")
    if objective_class(networks.objective).energies or not needed <= parts:
        raise UserError(f"{networks.source} hasn't a generator and a discriminator as ELECTRA "
                        "trains them; name a run of objective.name=electra, or a conversion of "
                        "both networks.")
