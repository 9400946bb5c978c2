"""The tasks of the comparison: their files, settings and fixed subsets, and the scores."""

import dataclasses
import json
import pathlib
from typing import Any

import numpy as np
from absl import flags
from scipy import stats
from sklearn import metrics


@dataclasses.dataclass(frozen=True, kw_only=True)
class Comparison:
    """One task, as both programs train it."""

    name: str
    train: str
    """Path below --data_dir."""
    dev: str
    metric: str
    epochs: int
    learning_rate: float = 1e-4
    max_seq_length: int = 128
    train_examples: int | None = None
    """Size of the drawn subset; None takes all examples."""
    dev_examples: int | None = None
    """The first examples that are scored; None takes all."""
    settings: tuple[str, ...] = ()
    """Further flags of `run_finetuning.py`."""


def _glue(name: str, directory: str, metric: str, epochs: int, **fields: Any) -> Comparison:
    return Comparison(name=name, train=f"glue/{directory}/train.tsv",
                      dev=f"glue/{directory}/dev.tsv", metric=metric, epochs=epochs, **fields)


TASKS = {task.name: task for task in (
    _glue("stsb", "STS-B", "spearman", 3, train_examples=2874),
    _glue("cola", "CoLA", "mcc", 3),
    _glue("sst2", "SST-2", "accuracy", 1, train_examples=6000),
    Comparison(name="chunk", train="conll2000/train.txt", dev="conll2000/test.txt", metric="f1",
               epochs=1, learning_rate=3e-4, train_examples=4468),
    _glue("mrpc", "MRPC", "f1", 2),
    _glue("rte", "RTE", "accuracy", 4),
    Comparison(name="squad", train="squad/train-v1.1.json", dev="squad/dev-v1.1.json", metric="f1",
               epochs=3, learning_rate=2e-4, max_seq_length=384, train_examples=1000,
               dev_examples=300, settings=("--set=task.ends_given_starts=false",)),
)}


def define_inputs() -> list[str]:
    """Defines the flags of the data and the encoder; returns their names."""
    flags.DEFINE_string("data_dir", None, "Directory with glue/, conll2000/ and squad/.",
                        required=True)
    flags.DEFINE_string("encoder", None, "Directory of a BERT encoder in Hugging Face's format, "
                        "with tokenizer.json.", required=True)
    return ["data_dir", "encoder"]


def write_subset(task: Comparison, data_dir: pathlib.Path, target: pathlib.Path) -> None:
    """Writes a task's examples to `target` in the same layout and order.

    Those to train on are drawn with NumPy's `default_rng(0)`; of dev the first ones are taken.
    """
    for path, count, is_drawn in ((task.train, task.train_examples, True),
                                  (task.dev, task.dev_examples, False)):
        text = (data_dir / path).read_text("utf-8-sig")
        begin, examples, separator, end = _examples(task.name, text)
        order = np.random.default_rng(0).permutation(len(examples)) if is_drawn else np.arange(
            len(examples))
        kept = [examples[index] for index in np.sort(order[:count])]
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).write_text(begin + separator.join(kept) + end, "utf-8")


def _examples(name: str, text: str) -> tuple[str, list[str], str, str]:
    """Returns a file's beginning, its examples, their separator and the file's end."""
    if name == "squad":
        paragraphs = [{"context": paragraph["context"], "qas": [question]}
                      for article in json.loads(text)["data"]
                      for paragraph in article["paragraphs"] for question in paragraph["qas"]]
        return ('{"version": "1.1", "data": [{"title": "", "paragraphs": [',
                [json.dumps(paragraph) for paragraph in paragraphs], ", ", "]}]}")
    if name == "chunk":
        return "", text.strip("\n").split("\n\n"), "\n\n", "\n\n"
    lines = text.strip("\n").split("\n")
    header = [] if name == "cola" else [lines.pop(0)]  # CoLA's file has none.
    return "".join(f"{line}\n" for line in header), lines, "\n", "\n"


def score(task: Comparison, dev: pathlib.Path, predictions: Any) -> float:
    """Returns the task's metric in percent, from predictions in the order of `dev`.

    Predictions are the file's labels, numbers, lists of tags, or for SQuAD answers by id.
    """
    # Imported here, as TensorFlow takes seconds, which --help does not need.
    from electra_tf.tasks.kinds.answers import answer_scores
    from electra_tf.tasks.kinds.tagging import tag_scores

    _, examples, *_ = _examples(task.name, dev.read_text("utf-8-sig"))
    if task.name == "squad":
        questions = [question for example in examples for question in json.loads(example)["qas"]]
        gold = {question["id"]: [answer["text"] for answer in question["answers"]]
                for question in questions}
        return 100.0 * answer_scores(gold, predictions)["f1"]
    if task.name == "chunk":
        tags = [[line.split()[-1] for line in example.split("\n")] for example in examples]
        return 100.0 * tag_scores(["f1"], tags, predictions)["f1"]
    column = {"cola": 1, "mrpc": 0}.get(task.name, -1)
    labels = [example.split("\t")[column] for example in examples]
    if task.metric == "spearman":
        return 100.0 * stats.spearmanr(list(map(float, labels)), predictions).statistic
    function = {"mcc": metrics.matthews_corrcoef, "accuracy": metrics.accuracy_score,
                "f1": lambda *both: metrics.f1_score(*both, pos_label="1")}[task.metric]
    return 100.0 * float(function(labels, predictions))
