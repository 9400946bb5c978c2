"""A fine-tuning run: settings that fit together, its devices, rows, models and directory."""

import dataclasses
import functools
import hashlib
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from electra_tf.checkpoints import run_directory
from electra_tf.checkpoints.weights import assign_weights, read_checkpoint
from electra_tf.config.finetuning import FinetuningConfig, LongTexts
from electra_tf.config.model import RANDOM
from electra_tf.config.overrides import Changes, override
from electra_tf.config.runtime import Precision
from electra_tf.core.errors import UserError
from electra_tf.core.storage import Path
from electra_tf.data.buckets import COMPILED_TOKENS, Row, RowBatch, bucket_lengths
from electra_tf.formats.pretrained import Checkpoint
from electra_tf.modeling.task_heads import TaskNetwork
from electra_tf.reporting import trackers
from electra_tf.tasks import files
from electra_tf.tasks.kinds.base import HEAD_NAME, Split, TaskKind, TaskObjective
from electra_tf.tasks.kinds.windows import limit_windows
from electra_tf.tasks.labels import BALANCED, balanced_weights
from electra_tf.tasks.registry import KINDS
from electra_tf.tasks.task import Example, TaskSpec
from electra_tf.text.normalization import TextSettings
from electra_tf.text.rows import RowEncoder
from electra_tf.training import failures, strategies
from electra_tf.training.devices import build_model


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinetuningRun:
    """A run: its checked settings, devices, task, text settings, directory and teacher."""

    config: FinetuningConfig
    objective: TaskObjective
    strategy: tf.distribute.Strategy
    spec: TaskSpec
    text: TextSettings
    model_dir: Path
    grid: Mapping[str, tuple[Any, ...]] = dataclasses.field(default_factory=dict)
    """Setting -> its values; all combinations are trained."""
    teacher: Checkpoint | None = None
    """The fine-tuned model whose outputs it also learns; see `distillation`."""

    @property
    def kind(self) -> TaskKind:
        """The kind of the task."""
        return KINDS[self.spec.kind]

    @functools.cached_property
    def _row_encoder(self) -> RowEncoder:
        return RowEncoder(self.text, self.config.task.max_seq_length,
                          self.config.model.type_vocab_size)

    def encode(self, examples: Sequence[Example]) -> Split:
        """Returns examples as rows, and the function that scores them."""
        return self.kind.encode(self.spec, examples, self._row_encoder, self.config.task)

    def check_training(self) -> list[str]:
        """Returns notes for the header of training; `UserError` for settings that don't fit."""
        return self.objective.check_training(self.config, self.strategy.num_replicas_in_sync)

    def training_rows(self, split: Split) -> tuple[list[Row], list[str]]:
        """Returns the rows to train on, with at most `max_windows` windows each, and notes on them.

        `UserError` for steps of more windows than the memory can hold.
        """
        task, batch = self.config.task, self.config.training.train_batch_size
        rows, notes = limit_windows(split.rows, task)
        if task.long_texts is LongTexts.WINDOWS:
            failures.require_memory(
                self.config.model, self.config.runtime, self.strategy, length=task.max_seq_length,
                batch=batch * max(len(row.ids) for row in rows))
        return rows, notes

    def padded_lengths(self, rows: Sequence[Row], epochs: float = 1.0) -> tuple[int, ...]:
        """Returns the lengths, in tokens, to which batches are padded; each compiles a step."""
        return bucket_lengths(
            [row.ids.shape[-1] for row in rows], self.config.task.max_seq_length,
            bucket_cost=round(COMPILED_TOKENS / epochs))

    def distributed(self, batch: RowBatch) -> Any:
        """Returns a batch of B rows as tensors: B / replicas rows for each replica."""
        replicas = self.strategy.num_replicas_in_sync

        def share(context: Any) -> RowBatch:
            replica = context.replica_id_in_sync_group
            return tf.nest.map_structure(
                lambda values: tf.constant(np.split(values, replicas)[replica]), batch)

        return self.strategy.experimental_distribute_values_from_function(share)

    @property
    def combinations(self) -> list[dict[str, Any]]:
        """All combinations of the grid's values; a single empty one without a grid."""
        return [dict(zip(self.grid, values, strict=True))
                for values in itertools.product(*self.grid.values())]

    def with_settings(self, changes: Changes) -> "FinetuningRun":
        """Returns the run with other settings; `UserError` for those that don't fit together."""
        config = override(self.config, changes)
        failures.require_memory(
            config.model, config.runtime, self.strategy, length=config.task.max_seq_length,
            batch=config.training.train_batch_size)
        if config == self.config:
            return self
        return dataclasses.replace(self, config=config,
                                   objective=self.kind.objective(self.spec, config.task))

    @property
    def in_float32(self) -> "FinetuningRun":
        """The run in the precision of predictions and scores, which exported models have too."""
        return self.with_settings({"training.precision": Precision.FLOAT32.value})

    def with_class_weights(self, examples: Sequence[Example]) -> "FinetuningRun":
        """Returns the run with the class weights of these training examples."""
        if self.config.task.class_weights != BALANCED:
            return self
        labels = (label for example in examples for label in files.labels_of(example))
        return dataclasses.replace(self, objective=dataclasses.replace(
            self.objective, class_weights=balanced_weights(self.spec.labels, labels)))

    def build_model(self, seed: int, initial: Checkpoint | None = None) -> TaskNetwork:
        """Creates encoder and head on the run's devices; `initial` has the encoder's weights.

        The head's are kept too if it `fits_head`. A seed decides all others. `UserError` for
        weights of another shape.
        """
        model = build_model(self.objective, self.config, self.strategy, seed=seed,
                            cls_id=self.text.vocabulary.cls_id)
        encoder, layers = model.encoder, self.config.training.freeze_layers
        encoder.trainable = layers != -1
        frozen = (encoder.embeddings, encoder.embeddings_project, *encoder.encoder_layers[:layers])
        for part in filter(None, frozen if layers > 0 else ()):
            part.trainable = False
        if initial is not None:
            kept = model if self.fits_head(initial) else encoder
            assign_weights(kept.variables, initial.weights, initial.source)
        return model

    def fits_head(self, initial: Checkpoint) -> bool:
        """Returns True if initial weights have this head, of a task with the same labels."""
        if initial.task is None:
            return False
        head = self.objective.build_head(self.config.model, seed=0)
        return all(getattr(initial.task, name) == getattr(self.spec, name)
                   for name in ("kind", "label_words", "scale", "offset")) and {
            variable.name.split(":")[0]: tuple(variable.shape) for variable in head.variables} == {
                name: value.shape for name, value in initial.weights.items()
                if name.startswith(f"{HEAD_NAME}/")}

    def trained_model(self) -> TaskNetwork:
        """Returns the model in the run's directory; `UserError` for weights of another shape."""
        model = self.build_model(self.config.training.seed)
        assign_weights(model.variables, read_checkpoint(self.model_dir)[0], str(self.model_dir))
        return model


def weights_digest(checkpoint: Checkpoint, *facts: Any) -> str:
    """Returns a digest of a checkpoint's weights and of facts about it."""
    digest = hashlib.sha256(repr(facts).encode())
    for name, weight in sorted(checkpoint.weights.items()):
        digest.update(name.encode() + weight.tobytes())
    return digest.hexdigest()


def prepare_run(config: FinetuningConfig, spec: TaskSpec, text: TextSettings, model_dir: Path,
                grid: Mapping[str, tuple[Any, ...]] | None = None) -> FinetuningRun:
    """Returns a run; `UserError` for settings that don't fit together or missing devices."""
    grid = grid or {}
    for tracker in config.runtime.report_to:  # Refuses one that isn't installed.
        trackers.errors_of(tracker)
    objective = KINDS[spec.kind].objective(spec, config.task)
    # Devices are set up once: they must share the batches of every size in the grid.
    batch = "training.train_batch_size"
    size = math.gcd(*grid.get(batch, [config.training.train_batch_size]))
    unsplit = {"runtime.cpu_parts": 1} if objective.compares_rows else {}
    strategy, resolved = strategies.setup_devices(override(config, {batch: size} | unsplit))
    config = override(config, {"model.vocab_size": text.vocabulary.size} | resolved)
    run = FinetuningRun(config=config, objective=objective, strategy=strategy, spec=spec,
                        text=text, model_dir=model_dir, grid=grid)
    for changes in run.combinations:
        if run.with_settings(changes).config.task.swap_pairs and len(spec.text_columns) != 2:
            raise UserError(f"--swap_pairs needs two texts; --task={spec.name} has one.")
    return run


def prepare_trained(model_dir: Path, changes: Mapping[str, Any]) -> FinetuningRun:
    """Returns a trained run; `UserError` without one or for `changes` beyond the hardware."""
    fixed = [name for name in changes
             if not name.startswith("runtime.") and name != "training.precision"]
    if fixed:
        raise UserError(f"{fixed[0]} is fixed in a trained model; leave it out. Only settings of "
                        "the hardware can be given.")
    saved = run_directory.read_identity(model_dir)
    if (spec := TaskSpec.from_dict(saved, model_dir)) is None:
        raise UserError(f"{model_dir} holds no fine-tuned model. Name the --model_dir of a "
                        "fine-tuned run.")
    # The weights are trained, so the file of the initial ones may be gone.
    config = override(FinetuningConfig(), {
        **run_directory.settings_of(saved), "initialization.word_vectors": RANDOM,
        "training.precision": Precision.FLOAT32.value, **changes})
    return prepare_run(config, spec, run_directory.text_settings(model_dir), model_dir)
