"""A trained network with head and texts, on the trained encoder or a faster one."""

import dataclasses
from collections.abc import Callable, Sequence

import tensorflow as tf

from electra_tf.checkpoints.pretrained import Pretrained
from electra_tf.checkpoints.weights import assign_weights
from electra_tf.config.model import EncoderConfig
from electra_tf.export.signatures import Detector, Served
from electra_tf.modeling.electra import Discriminator, electra_encoder
from electra_tf.modeling.encoder import Encoder
from electra_tf.modeling.inference import InferenceEncoder
from electra_tf.objectives.registry import objective_class
from electra_tf.platform.errors import UserError
from electra_tf.text.rows import RowEncoder

TENSOR_PARALLEL = 2
"""Parts of a layer's computation: one request takes two cores."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Servable:
    """What can be exported."""

    encoder: Encoder
    """The trained encoder."""
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
    texts = RowEncoder(networks.text, config.max_position_embeddings)
    return Servable(encoder=discriminator.encoder, served_by=lambda encoder: Detector(
        encoder, discriminator.head, texts))


def _tensor_parallel(config: EncoderConfig) -> int:
    sizes: Sequence[int] = (config.num_heads, config.intermediate_size)
    return TENSOR_PARALLEL if all(size % TENSOR_PARALLEL == 0 for size in sizes) else 1
