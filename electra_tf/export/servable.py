"""Trained networks with head and texts to export, on the trained encoder or a faster one."""

import dataclasses
from collections.abc import Callable, Sequence

import tensorflow as tf

from electra_tf.checkpoints.pretrained import Pretrained
from electra_tf.checkpoints.weights import assign_weights
from electra_tf.config.finetuning import TaskConfig
from electra_tf.config.model import EncoderConfig
from electra_tf.export.signatures import Detector, Outputs, Served
from electra_tf.modeling.electra import Discriminator, TaskModel, electra_encoder
from electra_tf.modeling.encoder import Encoder
from electra_tf.modeling.inference import InferenceEncoder
from electra_tf.modeling.layers import Build
from electra_tf.objectives.registry import objective_class
from electra_tf.platform.errors import UserError
from electra_tf.tasks.kinds.kind import ServedNetwork
from electra_tf.tasks.kinds.registry import KINDS
from electra_tf.tasks.task import TaskSpec
from electra_tf.text.rows import RowEncoder, Tokens
from electra_tf.text.tokenization import TextSettings

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
        return self.served_by(InferenceEncoder(
            self.encoder, dtype, _tensor_parallel(self.encoder.config)))


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
        electra_encoder(config, seed=0, policy="float32"), Build(seed=0))
    assign_weights(discriminator.variables, networks.weights, networks.source)
    texts = RowEncoder(networks.text, config.max_position_embeddings)
    return Servable(encoder=discriminator.encoder, served_by=lambda encoder: Detector(
        encoder, discriminator.head, texts))


class ServedTask(Served):
    """A fine-tuned network."""

    def __init__(self, network: ServedNetwork):
        super().__init__(network.encoder, network.head, network.texts)
        self._network = network
        self._kind = KINDS[network.spec.kind]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the texts that the kind reads."""
        return self._kind.served_inputs(self._network.spec)

    def answer(self, *columns: tf.Tensor) -> Outputs:
        """Maps string [B] for every column to answers."""
        return self._kind.served_answer(self._network, *columns)

    def score(self, tokens: Tokens) -> Outputs:
        """Maps token ids to the network's outputs."""
        return self._kind.served_scores(self._network, tokens)


def of_task(model: TaskModel, spec: TaskSpec, config: TaskConfig, text: TextSettings,
            threshold: float | None) -> Servable:
    """Returns a fine-tuned model with float32 weights and arithmetic.

    `threshold` is the logit of "no answer" above which no answer is given; None gives every answer.
    """
    texts = RowEncoder(
        text, min(config.max_seq_length, model.encoder.config.max_position_embeddings))
    return Servable(encoder=model.encoder, served_by=lambda encoder: ServedTask(ServedNetwork(
        encoder=encoder, head=model.head, texts=texts, spec=spec, config=config,
        threshold=threshold)))


def _tensor_parallel(config: EncoderConfig) -> int:
    sizes: Sequence[int] = (config.num_heads, config.intermediate_size)
    return TENSOR_PARALLEL if all(size % TENSOR_PARALLEL == 0 for size in sizes) else 1
