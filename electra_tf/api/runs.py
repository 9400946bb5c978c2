"""Training from Python, and fine-tuned models."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from electra_tf.checkpoints import formats
from electra_tf.config.finetuning import FinetuningConfig
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.finetuning import outputs, setup, trials
from electra_tf.finetuning.predictor import Predictor
from electra_tf.finetuning.results import Results
from electra_tf.platform import storage, strict_json
from electra_tf.platform.bounded import MIB
from electra_tf.platform.errors import UserError
from electra_tf.pretraining import stages, training_run
from electra_tf.pretraining.results import RESULTS_FILE
from electra_tf.tasks import registry
from electra_tf.tasks.examples import Kind, TextExample
from electra_tf.tasks.files import Columns, Files
from electra_tf.tasks.recipes import recipe


class TaskModel:
    """A fine-tuned model for texts, from `electra_tf.load_task`.

    Attributes:
        name: of the task.
        labels: of a classifier, in the order of its outputs; empty for regression.
    """

    def __init__(self, run: setup.FinetuningRun):
        if run.spec.kind not in (Kind.CLASSIFICATION, Kind.REGRESSION):
            raise UserError(f"{run.model_dir} holds a model for {run.spec.kind.replace('_', ' ')}; "
                            "predict with run_finetuning.py --mode=predict.")
        self.name, self.labels = run.spec.name, tuple(run.spec.label_words)
        self._run = run
        self._predictor = Predictor(run.trial, run.trained_model())

    def predict(self, texts: Sequence[str] | Sequence[tuple[str, str]]) -> list[Mapping[str, Any]]:
        """Returns a prediction for each text, or each pair of texts.

        Returns:
            Mappings with "prediction", a label or a number, and other outputs of the task's kind,
            as `run_finetuning.py --mode=predict` writes them.

        Raises:
            UserError: the task reads pairs and got single texts, or the other way round.

        Example:
            >>> classifier.predict(["A fine film."])[0]["prediction"] in classifier.labels
            True
        """
        rows = [(text,) if isinstance(text, str) else tuple(text) for text in texts]
        needed = len(self._run.spec.texts)
        for row in rows:
            if len(row) != needed:
                raise UserError(f"the task {self.name} reads {needed} text(s) per example. "
                                f"Received {len(row)}: {row!r}")
        examples = [TextExample(key=str(number), texts=row) for number, row in enumerate(rows)]
        if not examples:
            return []
        records = outputs.scored(self._predictor, self._run.encode(examples), None).records
        return [{name: value for name, value in record.items() if name != "key"}
                for record in records]


def load_task(directory: str | Path) -> TaskModel:
    """Returns the fine-tuned classifier or regression model of a run's directory.

    Raises:
        UserError: no fine-tuned model is there, or one of another kind.

    Example:
        >>> import electra_tf
        >>> classifier = electra_tf.load_task("runs/sst2")  # doctest: +SKIP
    """
    return TaskModel(setup.prepare_trained(storage.path(directory), {}))


def pretrain(config: PretrainingConfig, *, data_dir: str | Path, model_dir: str | Path,
             init_checkpoint: str | Path | None = None) -> Mapping[str, float | None]:
    """Pre-trains on records, or continues the run in `model_dir`, and scores the result.

    Args:
        config: every setting; `electra_tf.pretraining_config("small")` has the paper's.
        data_dir: of records that data_prep built.
        model_dir: of the run; created if needed.
        init_checkpoint: networks to begin with.

    Returns:
        The last evaluation on the held-out examples, "step" and scores by name (None where a score
        is undefined); empty if the records hold nothing out.

    Raises:
        UserError: as `run_pretraining.py`.
    """
    directory = storage.path(model_dir)
    initial = None if init_checkpoint is None else formats.read(storage.path(init_checkpoint))
    for run in stages.runs(config, data_dir, directory, None, initial):
        training_run.train(run)
    scores = directory / RESULTS_FILE
    return strict_json.read(scores, dict[str, float | None], most=MIB) if scores.exists() else {}


def finetune(task: str, *, init_checkpoint: str | Path, model_dir: str | Path,
             data_dir: str | Path | None = None, train: str | Path | None = None,
             dev: str | Path | None = None, text_columns: Sequence[str] = (),
             label_column: str = "", config: FinetuningConfig | None = None) -> Results:
    """Fine-tunes an encoder on one task, or continues the run in `model_dir`.

    Args:
        task: as `run_finetuning.py --task`: a benchmark's name, or a kind of task with files of
            your own.
        init_checkpoint: the pre-trained encoder.
        model_dir: of the run; created if needed.
        data_dir: of a benchmark's files; without them and `train`, TensorFlow Datasets has them.
        train: file of training examples of your own.
        dev: file of development examples of your own.
        text_columns: names of the columns with texts.
        label_column: name of the column with labels.
        config: every setting; the task's recipe by default.

    Returns:
        The scores of all trials.

    Raises:
        UserError: as `run_finetuning.py`.
    """
    initial = formats.read(storage.path(init_checkpoint), generator=False)
    columns = {"texts": tuple(text_columns), "label": label_column}
    files = Files(columns=Columns(**{name: value for name, value in columns.items() if value}),
                  **{name: storage.path(path) for name, path in (("train", train), ("dev", dev))
                     if path is not None})
    loaded = registry.load(task, None if data_dir is None else storage.path(data_dir), files,
                           from_tfds=data_dir is None and train is None)
    run = setup.prepare(config or recipe(task, initial.model), loaded.spec, initial.text,
                        storage.path(model_dir))
    return trials.train(run, loaded, initial)
