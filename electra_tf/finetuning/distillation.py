"""Distillation: a student also learns the probabilities of a fine-tuned teacher.

The teacher's outputs are computed once and become targets of the student's rows, so a training step
needs neither its network nor its vocabulary.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf
import tf_keras

from electra_tf.checkpoints.run_directory import SETTINGS_FILE
from electra_tf.checkpoints.weights import assign_weights
from electra_tf.config.finetuning import FinetuningTrainingConfig
from electra_tf.config.overrides import override
from electra_tf.config.runtime import Precision
from electra_tf.core.errors import UserError, shown
from electra_tf.core.storage import Path
from electra_tf.data.buckets import Row, RowBatch
from electra_tf.finetuning.predict import Predictor, progress
from electra_tf.finetuning.results import shown_score
from electra_tf.finetuning.run import FinetuningRun, weights_digest
from electra_tf.formats import pretrained
from electra_tf.formats.pretrained import Checkpoint
from electra_tf.modeling.rng import Rng
from electra_tf.objectives.objective import LossOutput, count
from electra_tf.tasks.kinds.base import TaskObjective, sum_where
from electra_tf.tasks.registry import KINDS, recipe
from electra_tf.tasks.task import Example, Kind, TaskSpec

TEACHER, IS_LABELLED = "teacher/", "is_labelled"
"""Targets of rows: the prefix of the teacher's outputs, and the mark of rows with a label."""


def with_teacher(run: FinetuningRun, path: Path | None) -> FinetuningRun:
    """Returns a run that learns from the fine-tuned classifier at a path, in any format.

    `UserError` for other models, for other labels than the run's, and for settings without effect.
    """
    # Settings of distillation without a teacher, and a teacher without effect.
    training = run.config.training
    if path is None:
        for name, default in vars(FinetuningTrainingConfig()).items():
            is_given = getattr(training, name) != default or f"training.{name}" in run.grid
            if is_given and name.startswith("distillation_"):
                raise UserError(f"--{name} needs --teacher, the fine-tuned model to learn from.")
        return run
    if f"{path.resolve()}/".startswith(f"{run.model_dir.resolve()}/"):
        raise UserError(f"--teacher={path} is in --model_dir={run.model_dir}, the student's "
                        "directory; name another --model_dir.")

    # The teacher: a classifier of the same texts, with the same labels.
    teacher = pretrained.read(path)
    if teacher.task is None:
        raise UserError(f"--teacher={path} is not fine-tuned. Fine-tune it with --init_checkpoint="
                        f"{path} and a --model_dir, which is then the teacher.")
    spec = teacher.task
    if run.spec.kind != spec.kind or spec.kind not in (Kind.CLASSIFICATION, Kind.MULTILABEL):
        raise UserError("task and teacher must both be classification or both multilabel. "
                        f"Received: {run.spec.kind}, --teacher={path} ({spec.kind})")
    # Files of transformers don't say that a model reads pairs, but ours do.
    if len(spec.text_columns) != len(run.spec.text_columns) and (
            len(spec.text_columns) == 2 or (path / SETTINGS_FILE).exists()):
        raise UserError(f"--teacher={path} reads {len(spec.text_columns)} text(s) per example, and "
                        f"--task={run.spec.name} {len(run.spec.text_columns)}.")
    _label_order(run.spec, spec, path)
    return dataclasses.replace(run, teacher=teacher)


def _label_order(student: TaskSpec, teacher: TaskSpec, source: object) -> list[int]:
    """Returns the teacher's index of each label of the student, by name; case may differ."""
    for form in (str, str.casefold):
        for names, others in ((student.label_words, teacher.label_words),
                              (student.label_words, teacher.labels),
                              (student.labels, teacher.label_words)):
            index = {form(label): number for number, label in enumerate(others)}
            order = [index.get(form(label)) for label in names]
            if len(order) == len(others) and set(order) == set(range(len(others))):
                return order
    raise UserError(f"--teacher={source} has the labels {shown(teacher.label_words)}, and --task="
                    f"{student.name} {shown(student.label_words)}; both need the same names.")


def teacher_identity(teacher: Checkpoint) -> Mapping[str, str]:
    """Returns the source of a teacher, and a digest of all that its outputs depend on."""
    settings = {name: value for name, value in teacher.task_settings.items()
                if name != "training.precision"}  # A teacher computes in its student's.
    return {"teacher": teacher.source, "teacher_digest": weights_digest(
        teacher, teacher.task.to_dict(), settings, teacher.config, teacher.text.to_dict())}


def add_targets(run: FinetuningRun, examples: Sequence[Example], rows: Sequence[Row],
                dev: Mapping[str, Sequence[Example]]) -> list[Row]:
    """Returns the rows of examples with the outputs of the run's teacher; prints its scores."""
    # The teacher, which reads the student's examples with its own vocabulary and settings.
    teacher = run.teacher
    spec = teacher.task
    config = dataclasses.replace(override(recipe(spec.name, teacher.config), {
        **teacher.task_settings, "training.precision": Precision.FLOAT32.value,
    }), runtime=run.config.runtime)
    reader = dataclasses.replace(run, config=config, spec=spec, text=teacher.text, teacher=None,
                                 objective=KINDS[spec.kind].objective(spec, config.task))
    model = reader.build_model(seed=0)
    assign_weights(model.variables, teacher.weights, teacher.source)
    predictor, order = Predictor(reader, model), _label_order(run.spec, spec, teacher.source)

    def outputs(part: Sequence[Example]) -> list[dict[str, np.ndarray]]:
        results = predictor.predict(reader.encode(part).rows, progress())
        return [{"logits": result["logits"][order]} for result in results]

    # Its scores on dev, and its outputs as targets of every row.
    scores = [f"{split}: {metric} {shown_score(metric, value)}" for split, part in dev.items()
              for metric, value in run.encode(part).score(outputs(part), None).scores.items()]
    print(f"teacher  {teacher.source}: labels {len(rows):,} rows", *scores, sep="; ", flush=True)
    return [dataclasses.replace(row, targets={
        **row.targets, **{f"{TEACHER}{name}": value for name, value in output.items()},
        IS_LABELLED: np.bool_(example.label is not None)})
        for row, output, example in zip(rows, outputs(examples), examples, strict=True)]


@dataclasses.dataclass(frozen=True)
class DistillationObjective:
    """(1 - a) CE + a T^2 KL(teacher || student) (Hinton et al., 2015, section 2).

    CE is the task's own loss, a mean over rows with a label; KL is a mean over all rows. That of a
    set of labels is the mean of those of the labels.
    """

    hard: TaskObjective
    config: FinetuningTrainingConfig

    @property
    def loss_weights(self) -> Mapping[str, float]:
        """Returns 1 - a and a."""
        soft = self.config.distillation_weight
        return {"hard": 1.0 - soft, "soft": soft}

    def prepare_inputs(self, batch: RowBatch,
                       rng: Rng) -> tuple[RowBatch, Mapping[str, tf.Tensor]]:
        """Returns the batch with labelled rows alone as present, and the numbers of rows."""
        targets = {**batch.targets, "present": batch.present}
        inputs, terms = self.hard.prepare_inputs(batch._replace(
            present=batch.present & targets[IS_LABELLED], targets=targets), rng)
        return inputs, {"hard": terms["loss"], "soft": count(batch.present)}

    def compute(self, model: tf_keras.Model, inputs: RowBatch, rng: Rng,
                *, training: bool) -> LossOutput:
        """Needs the targets of `add_targets`."""
        output = self.hard.compute(model, inputs, rng, training=training)

        # T^2 KL(teacher || student) of the classes, or of every label: it is there or not.
        targets, temperature = inputs.targets, self.config.distillation_temperature
        logits = output.per_example["logits"], targets[f"{TEACHER}logits"]
        if self.hard.spec.kind is Kind.MULTILABEL:
            logits = [tf.stack([tf.zeros_like(part), part], axis=-1) for part in logits]
        log_student, log_teacher = (tf.nn.log_softmax(part / temperature) for part in logits)
        divergences = tf.reduce_sum(tf.exp(log_teacher) * (log_teacher - log_student), axis=-1)
        if self.hard.spec.kind is Kind.MULTILABEL:
            divergences = tf.reduce_mean(divergences, axis=-1)

        return output._replace(loss_sums={
            "hard": output.loss_sums["loss"],
            "soft": temperature**2 * sum_where(divergences, targets["present"])})
