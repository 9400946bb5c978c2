"""What a kind of task is: from examples to rows and a loss, and back to predictions and scores."""

import abc
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from electra_tf.config.finetuning import TaskConfig
from electra_tf.data.buckets import Row
from electra_tf.objectives.objective import Objective
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.tasks.examples import Example, Kind
from electra_tf.tasks.files import Columns, Files
from electra_tf.tasks.task import Task, TaskSpec
from electra_tf.text.rows import RowEncoder

RowResults = Mapping[str, np.ndarray]
"""What a network says of a row: the objective's details."""
Record = Mapping[str, Any]
"""An example's prediction: plain values, "key" and "prediction" among them."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scored:
    """What came out of one split."""

    records: Sequence[Record]
    """One per example, in their order."""
    scores: Mapping[str, float]
    """Empty if the truth isn't known."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Split:
    """Encoded examples."""

    rows: list[Row]
    score: Callable[[Sequence[RowResults], float | None], Scored]
    """Maps what a network says of every row, and the threshold of "no answer" (None searches
    one), to predictions and scores."""


class TaskKind(abc.ABC):
    """One kind. Heads that are exported have their signatures in `export/signatures.py`."""

    kind: ClassVar[Kind]
    """Its name."""
    metrics: ClassVar[tuple[str, ...]]
    """What is reported where a task doesn't say otherwise; the first is the main one."""
    recipe: ClassVar[Mapping[str, Any]] = {}
    """Settings that differ from the general recipe's."""
    suffix: ClassVar[str]
    """Of files in this kind's own form, beside .jsonl."""

    @abc.abstractmethod
    def read(self, path: Path, columns: Columns, *, labelled: bool,
             strict: bool) -> Sequence[Example]:
        """Reads a file of examples.

        Args:
            path: of the file.
            columns: what it has.
            labelled: False for a file to predict, whose labels aren't looked at.
            strict: refuse what is only left out otherwise.

        Raises:
            UserError: it can't be read, or lacks a column.
        """

    def own_task(self, name: str, own: Files) -> Task:
        """Returns a task of the user's own files, of which train and dev are given.

        Raises:
            UserError: a file that can't be read, or examples that nothing can be learned from.
        """
        columns = own.columns
        train, dev = (self.read(path, columns, labelled=True, strict=own.strict)
                      for path in (own.train, own.dev))
        spec = TaskSpec(name=name, kind=self.kind, metrics=self.metrics, texts=columns.texts,
                        label=columns.label, key=columns.key)
        spec = self.fitted(spec, own, train, dev)
        test = {} if own.test is None else {
            "test": self.read(own.test, columns, labelled=False, strict=own.strict)}
        return Task(spec=spec, train=train, dev={"dev": dev}, test=test)

    def fitted(self, spec: TaskSpec, own: Files, train: Sequence[Example],
               dev: Sequence[Example]) -> TaskSpec:
        """Returns a task of the user's own with what its examples tell of it: labels, scale.

        Raises:
            UserError: nothing can be learned from them.
        """
        del own, train, dev
        return spec

    def check(self, spec: TaskSpec, config: TaskConfig) -> None:
        """Raises `UserError` if settings don't go with a task of this kind."""
        if config.feature_based:
            raise UserError(f"--feature_based is for tagging; --task={spec.name} is "
                            f"{spec.kind.replace('_', ' ')}.")

    @abc.abstractmethod
    def texts(self, example: Example) -> tuple[str, ...]:
        """Returns what the encoder reads of an example."""

    @abc.abstractmethod
    def encode(self, spec: TaskSpec, examples: Sequence[Example], encoder: RowEncoder,
               config: TaskConfig) -> Split:
        """Returns examples as rows, and the way back."""

    @abc.abstractmethod
    def objective(self, spec: TaskSpec, config: TaskConfig) -> Objective:
        """Returns what is minimised; it builds encoder and head."""

    @abc.abstractmethod
    def written(self, records: Sequence[Record]) -> str:
        """Returns predictions in this kind's own form."""

    def confusion(self, spec: TaskSpec, examples: Sequence[Example], records: Sequence[Record],
                  ) -> tuple[list[str], list[str]]:
        """Returns true and predicted label of everything that has one, as people read them."""
        del spec, examples, records
        return [], []
