"""One sentence through both networks: masked, filled in, judged (ELECTRA, section 3.1).

What training does to a batch, on one sentence and in the open. One thing differs: every selected
token is hidden behind [MASK], where training lets the generator read some of them.
"""

import dataclasses
import unicodedata
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from electra_tf.checkpoints.pretrained import Pretrained
from electra_tf.checkpoints.weights import assign_parts
from electra_tf.config.model import Tying
from electra_tf.modeling.electra import ElectraModel
from electra_tf.modeling.randomness import Randomness
from electra_tf.modeling.sampling import at_temperature, distribution, sample
from electra_tf.modeling.tracing import inference_mode
from electra_tf.objectives import samples
from electra_tf.platform import strict_json
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.settings import require
from electra_tf.tasks.encoding import encode_texts
from electra_tf.text.rows import RowEncoder
from electra_tf.text.tokenizer import Tokenizer

MOST_CANDIDATES = 8
"""Of a masked position."""
MOST_CHARACTERS = 20_000
"""Of a sentence; 512 tokens have some 2,500."""
RATES, TEMPERATURES, SEEDS = (0.01, 0.9), (0.01, 10.0), (0, 2**32 - 1)
"""Smallest and largest."""
_LENGTH_STEP = 8
"""Rows are padded to a multiple of it: one graph for each."""
_ENERGIES = "generator_ltr/"
"""Begins names of weights that only Electric's generator has."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Question:
    """What is done to which sentence.

    Raises:
        UserError: a number out of its range, or a sentence that can't be one.
    """

    __pydantic_config__ = strict_json.STRICT

    sentence: str
    mask_rate: float
    """Part of the tokens that are masked, in [0.01, 0.9]; one token is masked at least."""
    temperature: float
    """T of softmax(logits / T), in [0.01, 10]."""
    seed: int
    """Decides which tokens are masked, and what is drawn."""

    def __post_init__(self):
        for name, (least, most) in (("mask_rate", RATES), ("temperature", TEMPERATURES),
                                    ("seed", SEEDS)):
            value = getattr(self, name)
            require(least <= value <= most, name, f"from {least} to {most}", value)
        if len(self.sentence) > MOST_CHARACTERS:
            raise UserError(f"sentence must have at most {MOST_CHARACTERS:,} characters. "
                            f"Received: {len(self.sentence):,}")
        for character in self.sentence:
            if unicodedata.category(character) in ("Cc", "Cs") and character not in "\t\n\r":
                raise UserError("sentence must hold no control characters. "
                                f"Received: {shown(character)}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Candidate:
    """What the generator could fill in."""

    token: str
    probability: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Filling:
    """What the generator says of one masked position, at the temperature that was asked for."""

    candidates: Sequence[Candidate]
    """The likeliest, best first; at most 8."""
    original: Candidate
    sampled: Candidate


@dataclasses.dataclass(frozen=True, kw_only=True)
class Token:
    """One token of the sentence, and what became of it."""

    original: str
    """A WordPiece; "##" begins those that continue a word."""
    corrupted: str
    """What the discriminator read."""
    replaced_probability: float
    """The discriminator's, that the token is not the original one."""
    outcome: samples.Outcome
    filling: Filling | None
    """None where nothing was masked."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answer:
    """The whole sentence, without [CLS] and [SEP]."""

    tokens: Sequence[Token]
    summary: str
    """The counts, as a line."""


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
        self._encoder = RowEncoder(Tokenizer(self._vocabulary, networks.text.normalization),
                                   self._vocabulary, max_length=1 << 20)
        _require_both(networks)
        self._model = ElectraModel(networks.model, seed=0)
        assign_parts(self._model.variables, networks.weights, networks.source)
        self._steps = tf.function(self._compute, autograph=False)
        self._by_length: dict[int, tf.types.experimental.ConcreteFunction] = {}

    def answer(self, question: Question) -> Answer:
        """Masks, fills in and judges; equal questions have equal answers.

        Another temperature leaves the masks where they are; another rate keeps some of them.

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
        found = {name: value.numpy()[0] for name, value in self._compiled(length)(
            tf.constant(padded), tf.constant(selected), _uniforms(question.seed, length),
            tf.constant(question.temperature, tf.float32)).items()}
        words = self._vocabulary.tokens
        corruption = samples.Corruption(
            original=[words[index] for index in ids[inside]],
            corrupted=[words[index] for index in found["written"][inside]],
            selected=selected[0, inside].tolist(),
            replaced_probability=found["replaced_probability"][inside].tolist())
        return Answer(
            summary=samples.summary(corruption),
            tokens=[Token(
                original=before, corrupted=after, replaced_probability=probability,
                outcome=outcome,
                filling=self._filling(found, place, before, after) if selected[0, place] else None)
                for place, (before, after, probability, outcome) in enumerate(
                    corruption.tokens(), start=1)])

    def _compiled(self, length: int) -> tf.types.experimental.ConcreteFunction:
        if length not in self._by_length:
            row = tf.TensorSpec([1, length], tf.int32)
            with inference_mode():
                self._by_length[length] = self._steps.get_concrete_function(
                    row, tf.TensorSpec([1, length], tf.bool), tf.TensorSpec([length]),
                    tf.TensorSpec([]))
        return self._by_length[length]

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

    def _filling(self, found: dict[str, np.ndarray], place: int, before: str,
                 after: str) -> Filling:
        best = zip(found["best_ids"][place], found["best"][place], strict=True)
        return Filling(
            candidates=[Candidate(token=self._vocabulary.tokens[index],
                                  probability=float(probability)) for index, probability in best],
            original=Candidate(token=before, probability=float(found["original"][place])),
            sampled=Candidate(token=after, probability=float(found["sampled"][place])))


def positions(count: int, question: Question) -> np.ndarray:
    """Returns bool [n], which of n tokens are masked: round(rate n) of them, one at least.

    A higher rate masks more tokens beside those of a lower one.
    """
    order = np.random.default_rng(question.seed).permutation(count)
    chosen = np.zeros(count, bool)
    chosen[order[:max(1, round(question.mask_rate * count))]] = True
    return chosen


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
    electric = any(name.startswith(_ENERGIES) for name in networks.weights)
    if electric or not needed <= parts:
        raise UserError(f"{networks.source} hasn't a generator and a discriminator as ELECTRA "
                        "trains them; name a run of objective.name=electra, or a conversion of "
                        "both networks.")
