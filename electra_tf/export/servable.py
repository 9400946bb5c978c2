"""A trained network with all that its answers need, whichever encoder computes them."""

import dataclasses
from collections.abc import Callable, Sequence

import tensorflow as tf

from electra_tf.checkpoints.pretrained import Pretrained, TextSettings
from electra_tf.checkpoints.weights import assign_weights
from electra_tf.config.finetuning import TaskConfig
from electra_tf.config.model import EncoderConfig
from electra_tf.export.signatures import TASKS, Detector, Served
from electra_tf.modeling.electra import Discriminator, TaskModel, electra_encoder
from electra_tf.modeling.encoder import Encoder
from electra_tf.modeling.inference import InferenceEncoder
from electra_tf.objectives.registry import objective_class
from electra_tf.platform.errors import UserError
from electra_tf.tasks.task import TaskSpec
from electra_tf.text.rows import RowEncoder
from electra_tf.text.tokenizer import Tokenizer

TENSOR_PARALLEL = 2
"""Of a layer's computation: one request takes two cores."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Servable:
    """What can be exported."""

    encoder: Encoder
    """That was trained."""
    served_by: Callable[[InferenceEncoder | Encoder], Served]
    """Puts head and texts above an encoder."""

    def trained(self) -> Served:
        """Returns it on the trained encoder itself."""
        return self.served_by(self.encoder)

    def for_inference(self, dtype: tf.DType) -> Served:
        """Returns it on an encoder that answers faster; `dtype` is float32 or bfloat16."""
        config = self.encoder.config
        encoder = InferenceEncoder(config, dtype, _tensor_parallel(config))
        encoder.take(self.encoder)
        return self.served_by(encoder)


def of_task(model: TaskModel, spec: TaskSpec, config: TaskConfig, text: TextSettings,
            threshold: float | None) -> Servable:
    """Returns a fine-tuned model.

    Args:
        model: with float32 weights and arithmetic.
        spec: its task.
        config: how its examples become rows.
        text: how it reads text.
        threshold: of the logit that there is no answer; None gives every answer.
    """
    texts = _texts(text, min(config.max_seq_length, model.encoder.config.max_position_embeddings))
    return Servable(encoder=model.encoder, served_by=lambda encoder: TASKS[spec.kind](
        encoder, model.head, texts, spec, config, threshold))


def of_discriminator(networks: Pretrained) -> Servable:
    """Returns a pre-trained discriminator.

    Raises:
        UserError: the networks have none, or one whose outputs are energies.
    """
    if objective_class(networks.objective).energies:
        raise UserError(f"{networks.source} is of objective.name={networks.objective}: its outputs "
                        "are energies, not the probability of a replaced token. `python -m "
                        "electra_tf.apps.tools.score_text` ranks texts by them; fine-tuning takes "
                        "its encoder.")
    if not any(name.startswith("discriminator_predictions/") for name in networks.weights):
        raise UserError(f"{networks.source} has no discriminator to export (not every "
                        "objective trains one). Fine-tuned models are exported by "
                        "run_finetuning.py --mode=export.")
    config = networks.model.discriminator
    discriminator = Discriminator(
        electra_encoder(config, seed=0, policy="float32"), seed=0, policy="float32")
    assign_weights(discriminator.variables, networks.weights, networks.source)
    texts = _texts(networks.text, config.max_position_embeddings)
    return Servable(encoder=discriminator.encoder, served_by=lambda encoder: Detector(
        encoder, discriminator.head, texts))


def _texts(text: TextSettings, max_length: int) -> RowEncoder:
    tokenizer = Tokenizer(text.vocabulary, text.normalization)
    return RowEncoder(tokenizer, text.vocabulary, max_length)


def _tensor_parallel(config: EncoderConfig) -> int:
    sizes: Sequence[int] = (config.num_heads, config.intermediate_size)
    return TENSOR_PARALLEL if all(size % TENSOR_PARALLEL == 0 for size in sizes) else 1
