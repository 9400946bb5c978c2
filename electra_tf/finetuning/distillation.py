"""Distillation: a student also learns the probabilities of a fine-tuned teacher.

The teacher's outputs are computed once and become targets of the student's rows, so a training step
needs neither its network nor its vocabulary. The loss is that of Hinton et al. (2015, section 2),
optionally with a cosine loss of hidden vectors, as DistilBERT has (Sanh et al., 2019).
"""

import dataclasses
import hashlib
import time
import types
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from electra_tf.checkpoints.weights import assign_weights
from electra_tf.config.finetuning import FinetuningTrainingConfig, LongTexts
from electra_tf.config.overrides import override
from electra_tf.data.buckets import Row, RowBatch
from electra_tf.finetuning.outputs import progress
from electra_tf.finetuning.predictor import Predictor
from electra_tf.finetuning.results import shown_score
from electra_tf.finetuning.setup import FinetuningRun
from electra_tf.formats import pretrained
from electra_tf.formats.pretrained import Pretrained
from electra_tf.modeling.layers import Build, Dense
from electra_tf.modeling.randomness import Randomness
from electra_tf.modeling.task_heads import TaskNetwork
from electra_tf.objectives.objective import Outcome, count
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path
from electra_tf.reporting.progress import duration
from electra_tf.tasks.files import Files
from electra_tf.tasks.kinds.base import TaskObjective, sum_where
from electra_tf.tasks.registry import KINDS, recipe
from electra_tf.tasks.task import Example, Kind, Task, TaskSpec
from electra_tf.training.devices import POLICIES

TEACHER = "teacher/"
"""Prefix of a teacher's outputs among the targets of rows: "logits" [labels], "vectors" [H]."""
LABELLED = "is_labelled"
"""The target that marks rows with a label, bool."""


def with_teacher(run: FinetuningRun, path: Path) -> FinetuningRun:
    """Returns a run that learns from the fine-tuned model at a path, in any format.

    `UserError` for a model without a classifier's head, or with other labels than the run's.
    """
    training, directory = run.config.training, run.model_dir.resolve()
    if directory in (path.resolve(), *path.resolve().parents):
        raise UserError(f"--teacher={path} is in --model_dir={run.model_dir}, where the student "
                        "is trained; name another --model_dir.")
    if not training.distillation_weight and not training.distillation_hidden_weight:
        raise UserError("--distillation_weight=0 leaves --teacher out of the loss; give a weight "
                        "in (0, 1], or a --distillation_hidden_weight.")
    try:
        teacher = pretrained.read(path)
    except UserError as error:
        raise UserError(f"--teacher={path}: {error}") from error
    if teacher.task is None:
        raise UserError(f"--teacher={path} is pre-trained and not fine-tuned. Fine-tune it with "
                        f"--init_checkpoint={path} and a --model_dir, which is then the teacher.")
    spec = TaskSpec.of_facts(teacher.task, path)
    for kind, owner in ((run.spec.kind, f"--task={run.spec.name}"),
                        (spec.kind, f"--teacher={path}")):
        if kind is not Kind.CLASSIFICATION:
            raise UserError(f"{owner} is of the kind {kind}; only classification can be distilled.")
    if len(spec.texts) > len(run.spec.texts):
        raise UserError(f"--teacher={path} reads two texts per example; --task={run.spec.name} has "
                        "one.")
    if training.distillation_hidden_weight and LongTexts.WINDOWS in (
            run.config.task.long_texts, teacher.task_settings.get("task.long_texts")):
        raise UserError("--distillation_hidden_weight compares one vector per text; leave it out "
                        "with --long_texts=windows of teacher or student.")
    _label_order(run.spec, spec, path)
    return dataclasses.replace(run, teacher=teacher)


def with_unlabelled(task: Task, own: Files) -> Task:
    """Returns a task with the texts of `own.unlabelled`; a note counts labels, which are unused."""
    notes = [*task.notes]
    spec = dataclasses.replace(own.select(task.spec), key="")
    examples = KINDS[spec.kind].read(own.unlabelled, spec, labelled=False, notes=notes)
    if known := sum(example.label is not None for example in examples):
        notes.append(f"--unlabelled: the labels of {known:,} of {len(examples):,} rows are not "
                     "used")
    return dataclasses.replace(task, notes=notes, unlabelled=[
        dataclasses.replace(example, label=None) for example in examples])


def facts(teacher: Pretrained) -> Mapping[str, str]:
    """Returns the source of a teacher, and a digest of all that its outputs depend on."""
    digest = hashlib.sha256(repr((
        teacher.task, teacher.task_settings, teacher.model, teacher.text.facts())).encode())
    for name, weight in sorted(teacher.weights.items()):
        digest.update(name.encode() + np.ascontiguousarray(weight).tobytes())
    return {"teacher": teacher.source, "teacher_digest": digest.hexdigest()}


def add_targets(run: FinetuningRun, examples: Sequence[Example], rows: Sequence[Row],
                dev: Mapping[str, Sequence[Example]]) -> list[Row]:
    """Returns the rows of examples with the outputs of the run's teacher; prints its scores."""
    began, teacher, training = time.monotonic(), run.teacher, run.config.training
    spec = TaskSpec.of_facts(teacher.task, teacher.source)
    config = override(recipe(spec.name, teacher.model), {
        **teacher.task_settings, "training.precision": training.precision.value})
    config = dataclasses.replace(config, runtime=run.config.runtime)
    reader = dataclasses.replace(run, config=config, spec=spec, text=teacher.text, teacher=None,
                                 objective=KINDS[spec.kind].objective(spec, config.task))
    model = reader.build_model(seed=0)
    assign_weights(model.variables, teacher.weights, teacher.source)
    if training.distillation_hidden_weight:
        reader = dataclasses.replace(reader, objective=_WithVectors(reader.objective))
    predictor, order = Predictor(reader, model), _label_order(run.spec, spec, teacher.source)

    def outputs(part: Sequence[Example]) -> list[dict[str, np.ndarray]]:
        encoded = reader.encode([dataclasses.replace(example, label=None) for example in part])
        return [{**result, "logits": result["logits"][order]}
                for result in predictor.predict(encoded.rows, progress())]

    scores = {name: run.kind.score(run.spec, part, outputs(part)).scores
              for name, part in dev.items()}
    targets = [{f"{TEACHER}{name}": value for name, value in output.items()}
               for output in outputs(examples)]
    print(f"teacher  {teacher.source}: {len(rows):,} rows in {duration(time.monotonic() - began)}",
          *(f"{split}: {metric} {shown_score(metric, values[metric])}"
            for split, values in scores.items() for metric in run.spec.metrics),
          sep="  ", flush=True)
    return [dataclasses.replace(row, targets={
        **row.targets, **target, LABELLED: np.bool_(example.label is not None)})
        for row, target, example in zip(rows, targets, examples, strict=True)]


def student(run: FinetuningRun, model: TaskNetwork,
            seed: int) -> tuple["DistillationObjective", tf_keras.Model]:
    """Returns what a run with a teacher trains: an objective, and a model with its projection.

    The projection of hidden vectors is trained with the model and is not part of it.
    """
    training = run.config.training
    objective = DistillationObjective(run.objective, training)
    if not training.distillation_hidden_weight:
        return objective, model
    with run.strategy.scope():
        policy = POLICIES[training.precision]
        trained = tf_keras.Model(name="student", dtype=policy)
        trained.encoder, trained.head = model.encoder, model.head
        trained.projection = Dense(
            "distillation/projection", run.config.model.hidden_size,
            run.teacher.model.hidden_size, Build(seed=seed, policy=policy))
    return objective, trained


class _Recorder:
    """An encoder that keeps the vectors of [CLS], [B, H], which an objective reads."""

    def __init__(self, encoder: Any):
        self._encoder = encoder

    def first(self, *inputs: Any) -> tf.Tensor:
        self.vectors = self._encoder.first(*inputs)
        return self.vectors


@dataclasses.dataclass(frozen=True)
class _WithVectors:
    """An objective of texts whose details also hold the vectors of [CLS]."""

    hard: TaskObjective

    def compute(self, model: TaskNetwork, inputs: RowBatch, randomness: Randomness,
                *, training: bool) -> Outcome:
        """Adds "vectors", float32 [B, H], to the details."""
        recorder = _Recorder(model.encoder)
        outcome = self.hard.compute(types.SimpleNamespace(encoder=recorder, head=model.head),
                                    inputs, randomness, training=training)
        return outcome._replace(details={
            **outcome.details, "vectors": tf.cast(recorder.vectors, tf.float32)})


@dataclasses.dataclass(frozen=True)
class DistillationObjective(_WithVectors):
    """(1 - a) * hard loss + a * T^2 * KL(teacher || student) + b * cosine distance of [CLS].

    The hard loss is the mean over rows with a label, the others are means over all rows.
    """

    config: FinetuningTrainingConfig

    @property
    def coefficients(self) -> Mapping[str, float]:
        """Returns 1 - a, a, and b if it isn't 0."""
        soft, hidden = self.config.distillation_weight, self.config.distillation_hidden_weight
        return {"hard": 1.0 - soft, "soft": soft} | ({"hidden": hidden} if hidden else {})

    def prepare_inputs(self, batch: RowBatch,
                       randomness: Randomness) -> tuple[RowBatch, Mapping[str, tf.Tensor]]:
        """Returns the batch and the numbers of rows of the losses."""
        _, terms = self.hard.prepare_inputs(_labelled(batch), randomness)
        return batch, dict.fromkeys(self.coefficients, count(batch.present)) | {
            "hard": terms["loss"]}

    def compute(self, model: tf_keras.Model, inputs: RowBatch, randomness: Randomness,
                *, training: bool) -> Outcome:
        """Needs the targets that `add_targets` adds."""
        outcome = super().compute(model, _labelled(inputs), randomness, training=training)
        temperature, targets = self.config.distillation_temperature, inputs.targets
        log_student = tf.nn.log_softmax(outcome.details["logits"] / temperature)
        log_teacher = tf.nn.log_softmax(targets[f"{TEACHER}logits"] / temperature)
        divergences = tf.reduce_sum(tf.exp(log_teacher) * (log_teacher - log_student), axis=-1)
        losses = {"hard": outcome.loss_sums["loss"],
                  "soft": temperature**2 * sum_where(divergences, inputs.present)}
        if "hidden" in self.coefficients:
            projected = tf.cast(model.projection(outcome.details["vectors"]), tf.float32)
            negative_cosines = tf_keras.losses.cosine_similarity(
                targets[f"{TEACHER}vectors"], projected)
            losses["hidden"] = sum_where(1.0 + negative_cosines, inputs.present)
        return outcome._replace(loss_sums=losses)


def _labelled(batch: RowBatch) -> RowBatch:
    """Returns a batch in which only rows with a label count."""
    return batch._replace(present=batch.present & batch.targets[LABELLED])


def _label_order(student: TaskSpec, teacher: TaskSpec, source: object) -> list[int]:
    """Returns the teacher's index of each label of the student, by name; case may differ."""
    for names, others in ((student.label_words, teacher.label_words),
                          (student.labels, teacher.labels)):
        for form in (str, str.casefold):
            index = {form(label): number for number, label in enumerate(others)}
            order = [index.get(form(label)) for label in names]
            if len(order) == len(others) and set(order) == set(range(len(others))):
                return order
    raise UserError(f"--teacher={source} has the labels {shown(teacher.label_words)}; those of "
                    f"--task={student.name} are {shown(student.label_words)}. Both need the same "
                    "names, in any order.")
