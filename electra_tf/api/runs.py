"""Trains networks from Python, and predicts with fine-tuned models."""

import os
from collections.abc import Sequence
from typing import Any

from electra_tf.api.electra import to_list, to_string
from electra_tf.config.finetuning import FinetuningConfig
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.finetuning import outputs, setup, trials
from electra_tf.finetuning.results import Results
from electra_tf.formats import pretrained
from electra_tf.platform import storage
from electra_tf.platform.errors import UserError, shown
from electra_tf.pretraining import loop
from electra_tf.pretraining.evaluation import saved_scores
from electra_tf.pretraining.setup import stages
from electra_tf.tasks import registry
from electra_tf.tasks.files import Files

PathName = str | os.PathLike[str]


class TaskModel:
    """A fine-tuned model, from `electra_tf.load_task`.

    Attributes:
        name (str): Name of the task.
        labels (tuple[str, ...]): Classes or tags; empty for regression and extractive QA.
    """

    def __init__(self, run: setup.FinetuningRun):
        self.name, self.labels = run.spec.name, tuple(run.spec.label_words)
        self._predictor = outputs.TaskPredictor(run)

    def predict(self, examples: Sequence[str] | Sequence[Sequence[str]]) -> list[dict[str, Any]]:
        """Returns a prediction for each example.

        Args:
            examples: Texts, or pairs of texts for a task that reads two. Tagging takes texts with
                spaces between words, or lists of words; extractive QA (question, context) pairs.
                Texts longer than the run's `max_seq_length` are cut, with a warning.

        Returns:
            A dictionary for each, as `run_finetuning.py --mode=predict` writes it. "prediction" is
            a label, a number, a tag for each of "words", or an answer.

        Example:
            >>> classifier.predict(["A fine film."])[0]["prediction"] in classifier.labels
            True
        """
        records = self._predictor.predict([
            to_string(example) if isinstance(example, str | bytes)
            else list(map(to_string, to_list(example, "every example")))
            for example in to_list(examples, "examples")])
        return [{name: value for name, value in record.items() if name != "key"}
                for record in records]


def load_task(directory: PathName) -> TaskModel:
    """Returns the fine-tuned model of a run's directory; raises UserError if there is none."""
    return TaskModel(setup.prepare_trained(storage.path(directory), {}))


def pretrain(config: PretrainingConfig, *, data_dir: PathName, model_dir: PathName,
             init_checkpoint: PathName | None = None) -> dict[str, float | None]:
    """Pre-trains on records, or continues the run in `model_dir`, and scores the result.

    Args:
        config: All settings. `electra_tf.pretraining_config("small")` returns the paper's.
        data_dir: Directory of records that data_prep built.
        model_dir: Directory of the run; created if needed.
        init_checkpoint: Networks to begin with, as for `load`; new ones by default.

    Returns:
        The last evaluation on held-out examples: "step", and scores by name, None where a score
        is undefined. Empty if the records hold out no examples.
    """
    if not isinstance(config, PretrainingConfig):
        raise UserError("config must be a PretrainingConfig, such as "
                        f"electra_tf.pretraining_config('small'). Received: {shown(config)}")
    initial = None if init_checkpoint is None else pretrained.read(storage.path(init_checkpoint))
    for run in stages(config, str(data_dir), storage.path(model_dir), initial=initial):
        loop.train(run)
    return saved_scores(run.model_dir)


def finetune(task: str, *, init_checkpoint: PathName, model_dir: PathName,
             data_dir: PathName | None = None, train: PathName | None = None,
             dev: PathName | None = None, text_columns: str | Sequence[str] = "text",
             label_column: str = "label", config: FinetuningConfig | None = None) -> Results:
    """Fine-tunes an encoder on one task, or continues the run in `model_dir`.

    Args:
        task: Benchmark, or kind of a task with your own files, as `run_finetuning.py --task`.
        init_checkpoint: The pre-trained encoder, as for `load`.
        model_dir: Directory of the run; created if needed.
        data_dir: Directory of a benchmark's files; by default TensorFlow Datasets provides them.
        train: Your file of training examples.
        dev: Your file of development examples; by default a part of `train` is held out.
        text_columns: Names of the columns with texts, one or two.
        label_column: Name of the column with labels.
        config: All settings; the task's recipe by default.

    Returns:
        The scores of all trials; `results.best.scores` are those of the model that is kept.
    """
    initial = pretrained.read(storage.path(init_checkpoint), encoder_only=True)
    texts = (text_columns,) if isinstance(text_columns, str) else tuple(text_columns)
    train_files, dev_files = (() if file is None else [storage.path(file)] for file in (train, dev))
    loaded = registry.load(
        task, None if data_dir is None else storage.path(data_dir),
        Files(texts=texts, label=label_column, train=train_files, dev=dev_files,
              holds_out=config is None or not config.training.num_folds),
        from_tfds=data_dir is None and train is None)
    run = setup.prepare(config or registry.recipe(task, initial.model), loaded.spec, initial.text,
                        storage.path(model_dir))
    return trials.train(run, loaded, initial)
