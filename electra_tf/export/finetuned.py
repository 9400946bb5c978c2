"""A fine-tuned network to export: its task's kind says what it answers."""

import tensorflow as tf

from electra_tf.config.finetuning import TaskConfig
from electra_tf.export.servable import Servable
from electra_tf.export.signatures import Outputs, Served
from electra_tf.modeling.electra import TaskModel
from electra_tf.tasks.kinds.kind import ServedNetwork
from electra_tf.tasks.kinds.registry import KINDS
from electra_tf.tasks.task import TaskSpec
from electra_tf.text.rows import RowEncoder, Tokens
from electra_tf.text.tokenization import TextSettings


class ServedTask(Served):
    """A fine-tuned network."""

    def __init__(self, network: ServedNetwork):
        super().__init__(network.encoder, network.head, network.texts)
        self._network = lambda: network
        self._kind = KINDS[network.spec.kind]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the texts that the kind reads."""
        return self._kind.served_inputs(self._network().spec)

    def answer(self, *columns: tf.Tensor) -> Outputs:
        """Maps string [B] for every column to answers."""
        return self._kind.served_answer(self._network(), *columns)

    def score(self, tokens: Tokens) -> Outputs:
        """Maps token ids to the network's outputs."""
        return self._kind.served_scores(self._network(), tokens)


def of_task(model: TaskModel, spec: TaskSpec, config: TaskConfig, text: TextSettings,
            threshold: float | None) -> Servable:
    """Returns a fine-tuned model.

    Args:
        model: with float32 weights and arithmetic.
        spec: its task.
        config: how its examples become rows.
        text: how it reads text.
        threshold: logit of "no answer" above which no answer is given; None gives every answer.
    """
    texts = RowEncoder(
        text, min(config.max_seq_length, model.encoder.config.max_position_embeddings))
    return Servable(encoder=model.encoder, served_by=lambda encoder: ServedTask(ServedNetwork(
        encoder=encoder, head=model.head, texts=texts, spec=spec, config=config,
        threshold=threshold)))
