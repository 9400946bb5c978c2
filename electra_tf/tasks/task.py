"""What a task is, apart from its data and with it."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from electra_tf.tasks.examples import Example, Kind


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskSpec:
    """What a trained model has to know of its task; plain values, to be kept with it."""

    name: str
    """As `--task` takes it."""
    kind: Kind
    labels: tuple[str, ...] = ()
    """Classes or tags by index; empty for numbers and questions."""
    metrics: tuple[str, ...]
    """The first is the main one."""
    scale: float = 1.0
    """Numbers are learned as (number - offset) / scale."""
    offset: float = 0.0
    texts: tuple[str, ...] = ("text",)
    """Columns of the one or two texts."""
    label: str = "label"
    """Column of the label."""
    key: str = ""
    """Column that names a row in predictions; its line number if empty."""

    @property
    def better_if_lower(self) -> bool:
        """Tells whether the main metric is an error."""
        return self.metrics[0].endswith("_error")

    def facts(self) -> dict[str, Any]:
        """Returns all fields under names that don't look like settings."""
        return {f"task_{field.name}": list(value) if isinstance(value, tuple) else value
                for field in dataclasses.fields(self) for value in [getattr(self, field.name)]}

    @classmethod
    def of_facts(cls, saved: Mapping[str, Any]) -> "TaskSpec":
        """Returns what `facts` was made of; KeyError if one is missing."""
        values = {field.name: saved[f"task_{field.name}"] for field in dataclasses.fields(cls)}
        values = {name: tuple(value) if isinstance(value, list) else value
                  for name, value in values.items()}
        return cls(**values | {"kind": Kind(values["kind"])})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
    """A task and its examples."""

    spec: TaskSpec
    train: Sequence[Example]
    dev: Mapping[str, Sequence[Example]]
    """Split -> examples that are scored; the first decides what is best."""
    test: Mapping[str, Sequence[Example]]
    """Split -> examples to predict."""
    notes: tuple[str, ...] = ()
    """What a person should know of the data."""
