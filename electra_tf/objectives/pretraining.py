"""An objective of pre-training, and the functions that those with a generator share."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import tensorflow as tf
import tf_keras

from electra_tf.config.corruption import SamplingConfig
from electra_tf.config.model import EncoderConfig, ModelConfig
from electra_tf.core.errors import UserError
from electra_tf.data.example import Batch
from electra_tf.modeling import corruption
from electra_tf.modeling.corruption import Distribution
from electra_tf.modeling.electra import Generator
from electra_tf.modeling.masking import MaskedPositions, SpecialTokens, VocabInfo, mask_tokens
from electra_tf.modeling.rng import Rng
from electra_tf.modeling.specs import NetworkSpec
from electra_tf.objectives.objective import Objective, count

Arrays = Mapping[str, np.ndarray]


class DisplayedText(NamedTuple):
    """The text that evaluation shows beside the original."""

    ids: np.ndarray  # int32 [M, L].
    replaced_probability: np.ndarray | None = None
    """float [M, L], probability that a token is replaced; None if no network detects it."""


class TrainedGenerator(NamedTuple):
    """A generator that another run trained."""

    encoder: EncoderConfig
    weights: Mapping[str, np.ndarray]
    """All its weights; the encoder's are named "electra/...", the head's as in ELECTRA."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ObjectiveContext:
    """The facts that an objective reads besides its settings and batches."""

    vocab: VocabInfo
    token_counts: Callable[[], np.ndarray]
    """Reads the training records; returns the count of every vocabulary entry, int64 [V]."""
    generator: TrainedGenerator | None = None  # The generator that the objective's settings name.

    @classmethod
    def placeholder(cls, vocab_size: int, special: SpecialTokens | None = None,
                    generator: TrainedGenerator | None = None) -> Self:
        """Returns a context without records: every entry is a whole word and occurs once."""
        special = special or SpecialTokens(pad=0, cls=1, sep=2, mask=3)
        return cls(vocab=VocabInfo(special, vocab_size, np.zeros(vocab_size, bool)),
                   token_counts=lambda: np.ones(vocab_size, np.int64), generator=generator)


class MaskedBatch(NamedTuple):
    """A batch whose selected tokens are masked."""

    original: Batch
    ids: tf.Tensor  # int32 [B, L], tokens that the generator reads.
    masked: MaskedPositions


class PretrainingObjective(Objective):
    """An `Objective` of pre-training, with the scores, samples and networks that runs report.

    A new one is a subclass in a file of its own and an entry in `config.objectives.OBJECTIVES`,
    which has its settings and the names of its metrics. `modeling.encoder.create_encoder` creates
    the encoder for fine-tuning, whose weights are named "electra/...".
    """

    model_class: ClassVar[type[tf_keras.Model]]
    """The `modeling.electra.PretrainingModel` that `build_model` creates."""
    losses: ClassVar[tuple[str, ...]]
    """Names of the losses; the objective's settings have a factor for each, `<name>_weight`."""
    detection_logits: ClassVar[Callable[..., tf.Tensor] | None] = None
    """A method of objectives that detect replaced tokens, for fixed-noise evaluation. It takes a
    model and a `Batch`; it returns logits float32 [B, L], positive for probably replaced tokens."""

    own_samples: ClassVar[bool] = False
    """True if the losses are right for samples of the generator's own distribution alone."""

    def __init__(self, config: Any, context: ObjectiveContext):
        """Takes sections model, masking, sampling and objective; `UserError` for wrong samples."""
        if self.own_samples and config.sampling != SamplingConfig():
            raise UserError(
                f"objective.name={config.objective.name} needs samples of the generator's own "
                "distribution: leave the settings of sampling as they are.")
        self.config, self.context = config, context

    def build_model(self, config: ModelConfig, *, seed: int, policy: str,
                    recompute: bool = False) -> tf_keras.Model:
        """Creates the networks that the objective trains; arguments as for `PretrainingModel`."""
        return self.model_class(config, seed=seed, policy=policy, recompute=recompute)

    def prepare_inputs(self, batch: Batch, rng: Rng) -> tuple[MaskedBatch, Mapping[str, tf.Tensor]]:
        """Masks the batch, and counts what each loss averages over."""
        inputs = MaskedBatch(batch, *mask_tokens(
            batch.ids, batch.padding_mask, self.config.masking, self.context.vocab, rng))
        return inputs, self.denominators(inputs)

    @property
    def loss_weights(self) -> Mapping[str, float]:
        """The configured factor of every loss; the paper's are 1 and lambda = 50."""
        return {loss: getattr(self.config.objective, f"{loss}_weight") for loss in self.losses}

    def denominators(self, inputs: MaskedBatch) -> Mapping[str, tf.Tensor]:
        """Returns the number of terms of every loss, float32 []; by default of masked tokens."""
        return dict.fromkeys(self.loss_weights, count(inputs.masked.filled))

    def sample(self, softmax: Distribution, masked: MaskedPositions, rng: Rng,
               *, training: bool) -> tf.Tensor:
        """Draws a token from each of B * N distributions, int32 [B, N], without a gradient."""
        # The distributions [B * N, V'] that settings ask for; by default the generator's own.
        sampling = self.config.sampling
        softmax = corruption.at_temperature(
            softmax, corruption.temperature_at(sampling, rng.step) if training
            else sampling.temperature)
        if sampling.disallow_correct:
            softmax = corruption.without(softmax, tf.reshape(masked.original_ids, [-1]))

        # One uniform per slot selects a token.
        shape = masked.positions.shape
        uniforms = tf.reshape(rng.uniform("sampling", *shape), [-1])
        return tf.reshape(corruption.sample(softmax, uniforms), shape)

    def scores(self, per_example: Arrays, means: Mapping[str, float]) -> dict[str, float]:
        """Returns the scores of an evaluation of M examples, besides the losses.

        `per_example` are those of all `LossOutput`s, concatenated, with "padding_mask", bool [M,
        L]; `means` are the means of all metrics and losses.
        """
        return {}

    def displayed_text(self, per_example: Arrays) -> DisplayedText | None:
        """Returns the text that evaluation shows; None if the objective writes none.

        It is the corrupted text, with sigmoid(logits) as the probability of a replacement. Without
        "logits" it has the most likely tokens, "restored_ids" or "best_ids", at all selected
        positions. `per_example` are those of `scores`, with "ids" int32 [M, L].
        """
        if "logits" in per_example:
            return DisplayedText(
                per_example["corrupted_ids"], 1.0 / (1.0 + np.exp(-per_example["logits"])))
        if "predicted" not in per_example:
            return None
        # Row and slot of each filled slot, int64 [slots] both.
        rows, slots = np.nonzero(per_example["predicted"])
        best = per_example.get("restored_ids", per_example["best_ids"])
        written = per_example["ids"].copy()
        written[rows, per_example["positions"][rows, slots]] = best[rows, slots]
        return DisplayedText(written)

    def network_specs(self) -> Sequence[NetworkSpec]:
        """Returns the networks whose parameters and FLOPs are counted; none if unknown."""
        return ()


class GeneratorOutput(NamedTuple):
    """The generator's losses over a batch, and its distributions."""

    losses: tf.Tensor  # float32 [B, N], of every slot; 0 where it isn't filled.
    softmax: Distribution  # One distribution per slot, B * N of them.
    best_ids: tf.Tensor
    """int32 [B, N], the most likely token of every slot; 0 in training, which does not read it."""


def run_generator(generator: Generator, inputs: MaskedBatch, rng: Rng | None,
                  *, training: bool) -> GeneratorOutput:
    """Computes the masked-language-model loss (ELECTRA, section 3.1, L_MLM).

    `rng` is for dropout, which only training applies.
    """
    logits = generator(
        inputs.ids, inputs.original.segment_ids, inputs.original.padding_mask,
        inputs.masked.positions, rng if training else None)
    return score_predictions(logits, inputs.masked, training=training)


def score_predictions(logits: tf.Tensor, masked: MaskedPositions,
                      *, training: bool) -> GeneratorOutput:
    """Computes the losses of logits [B * N, V'] at the positions of `masked`, [B, N]."""
    # -log p(original token) of every slot [B, N]; those that aren't filled count 0.
    softmax = corruption.distribution(logits)
    shape = masked.positions.shape
    losses = corruption.cross_entropy(logits, tf.reshape(masked.original_ids, [-1]), softmax)
    weights = tf.cast(masked.filled, tf.float32)
    best = (tf.zeros_like(masked.original_ids) if training else tf.reshape(
        tf.argmax(logits, axis=-1, output_type=tf.int32), shape))
    return GeneratorOutput(tf.reshape(losses, shape) * weights, softmax, best)


def generator_fields(masked: MaskedPositions, best_ids: tf.Tensor) -> Mapping[str, tf.Tensor]:
    """Returns the values, each [B, N], that scores and samples of a generator need."""
    return {"best_ids": best_ids, "predicted": masked.filled,
            "original_ids": masked.original_ids, "positions": masked.positions}


def token_accuracy(per_example: Arrays, name: str = "best_ids") -> float:
    """Returns the accuracy of predicted tokens, by name, in [0, 1]; NaN without predictions."""
    # Slots that aren't filled do not count.
    predicted = per_example["predicted"]
    right = per_example[name] == per_example["original_ids"]
    return float(np.mean(right[predicted])) if predicted.any() else np.nan
