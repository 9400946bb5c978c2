"""The kinds of tasks by name. A new kind is registered here, and in `tasks/examples.py`.

A kind's module is imported when the kind is used: pre-training imports none.
"""

import functools
import importlib
from collections.abc import Iterator, Mapping
from typing import Any

from electra_tf.tasks.examples import Kind

_IMPLEMENTATIONS = {
    Kind.CLASSIFICATION: "classification:Classification",
    Kind.REGRESSION: "regression:Regression",
    Kind.TAGGING: "tagging:Tagging",
    Kind.QUESTION_ANSWERING: "questions:QuestionAnswering",
}
"""Name -> module of this package and class."""


@functools.cache
def _load(kind: Kind) -> Any:
    module, name = _IMPLEMENTATIONS[kind].split(":")
    return getattr(importlib.import_module(f"{__package__}.{module}"), name)()


class _Kinds(Mapping[Kind, Any]):
    def __getitem__(self, kind: Kind) -> Any:
        return _load(kind)

    def __iter__(self) -> Iterator[Kind]:
        return iter(_IMPLEMENTATIONS)

    def __len__(self) -> int:
        return len(_IMPLEMENTATIONS)


KINDS: Mapping[Kind, Any] = _Kinds()
"""Name -> `kind.TaskKind`."""
