"""Checks that a fine-tuning run's settings, encoder, task and devices fit together."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from electra_tf.checkpoints import run_directory
from electra_tf.checkpoints.weights import assign_weights, read_checkpoint
from electra_tf.config.finetuning import FinetuningConfig, LongTexts
from electra_tf.config.overrides import override
from electra_tf.data.buckets import Row, RowBatch, bucket_lengths
from electra_tf.formats.pretrained import Pretrained
from electra_tf.formats.run import task_facts, text_settings
from electra_tf.modeling.task_heads import TaskNetwork
from electra_tf.objectives.objective import Objective
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.reporting import trackers
from electra_tf.tasks.kinds.base import Split, TaskKind
from electra_tf.tasks.registry import KINDS
from electra_tf.tasks.task import Example, TaskSpec
from electra_tf.text.rows import RowEncoder
from electra_tf.text.tokenization import TextSettings
from electra_tf.training import failures, strategies
from electra_tf.training.devices import build_model


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinetuningRun:
    """A run: its checked settings, devices, task, text settings, directory and teacher."""

    config: FinetuningConfig
    objective: Objective
    strategy: tf.distribute.Strategy
    spec: TaskSpec
    text: TextSettings
    model_dir: Path
    teacher: Pretrained | None = None
    """The fine-tuned model whose outputs it also learns; see `distillation`."""

    @property
    def kind(self) -> TaskKind:
        """The kind of the task."""
        return KINDS[self.spec.kind]

    @functools.cached_property
    def _row_encoder(self) -> RowEncoder:
        return RowEncoder(self.text, self.config.task.max_seq_length)

    def encode(self, examples: Sequence[Example]) -> Split:
        """Returns examples as rows, and the function that scores them."""
        return self.kind.encode(self.spec, examples, self._row_encoder, self.config.task)

    def padded_lengths(self, rows: Sequence[Row]) -> tuple[int, ...]:
        """Returns the lengths, in tokens, to which batches are padded; each compiles a step."""
        return bucket_lengths([row.ids.shape[-1] for row in rows],
                              self.config.task.max_seq_length)

    def distributed(self, batch: RowBatch) -> Any:
        """Returns a batch of B rows as tensors: B / replicas rows for each replica."""
        replicas = self.strategy.num_replicas_in_sync

        def share(context: Any) -> RowBatch:
            replica = context.replica_id_in_sync_group
            return tf.nest.map_structure(
                lambda values: tf.constant(np.split(values, replicas)[replica]), batch)

        return self.strategy.experimental_distribute_values_from_function(share)

    def build_model(self, seed: int, initial: Pretrained | None = None) -> TaskNetwork:
        """Creates encoder and head on the run's devices; `initial` has the encoder's weights.

        A seed decides all others. `UserError` for weights of another shape.
        """
        model = build_model(self.objective, self.config, self.strategy, seed=seed)
        encoder, layers = model.encoder, self.config.training.freeze_layers
        encoder.trainable = layers != -1
        frozen = (encoder.embeddings, encoder.embeddings_project, *encoder.encoder_layers[:layers])
        for part in filter(None, frozen if layers > 0 else ()):
            part.trainable = False
        if initial is not None:
            assign_weights(encoder.variables, initial.weights, initial.source)
        return model

    def trained_model(self) -> TaskNetwork:
        """Returns the model in the run's directory; `UserError` for weights of another shape."""
        model = self.build_model(self.config.training.seed)
        assign_weights(model.variables, read_checkpoint(self.model_dir)[0], str(self.model_dir))
        return model


def prepare(config: FinetuningConfig, spec: TaskSpec, text: TextSettings, model_dir: Path, *,
            is_trained: bool = False) -> FinetuningRun:
    """Returns a run; `UserError` for settings that don't fit together or missing devices.

    A run that `is_trained` needs no memory for training, where texts have up to `max_windows` rows.
    """
    trackers.require_installed(config.runtime.report_to)
    objective = KINDS[spec.kind].objective(spec, config.task)
    if config.task.swap_pairs and len(spec.texts) != 2:
        raise UserError(f"--swap_pairs needs two texts; --task={spec.name} has one.")
    strategy, resolved = strategies.setup_devices(config)
    config = override(config, {"model.vocab_size": text.vocabulary.size} | resolved)
    windows = config.task.max_windows if config.task.long_texts is LongTexts.WINDOWS else 1
    if not is_trained:
        failures.require_memory(
            config.model, config.runtime, strategy, length=config.task.max_seq_length,
            batch=config.training.train_batch_size * windows)
    return FinetuningRun(config=config, objective=objective, strategy=strategy, spec=spec,
                         text=text, model_dir=model_dir)


def prepare_trained(model_dir: Path, changes: Mapping[str, Any]) -> FinetuningRun:
    """Returns a trained run; `UserError` without one or for `changes` beyond the hardware."""
    fixed = [name for name in changes
             if not name.startswith("runtime.") and name != "training.precision"]
    if fixed:
        raise UserError(f"{fixed[0]} is the trained model's; only settings of the hardware can be "
                        "given to use it.")
    if (facts := task_facts(run_directory.read_identity(model_dir))) is None:
        raise UserError(f"{model_dir} holds no fine-tuned model (perhaps a pre-training run).")
    spec = TaskSpec.of_facts(facts, model_dir)
    saved = run_directory.read_identity(model_dir, FinetuningConfig())
    config = override(FinetuningConfig(), run_directory.settings_of(saved) | dict(changes))
    return prepare(config, spec, text_settings(model_dir), model_dir, is_trained=True)
