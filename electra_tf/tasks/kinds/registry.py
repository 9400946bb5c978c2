"""The kinds of tasks by name. A new kind is registered here, and in `tasks/examples.py`.

A kind's module is imported when the kind is used.
"""

import functools
import importlib
from collections.abc import Iterator, Mapping

from electra_tf.tasks.examples import Kind
from electra_tf.tasks.kinds.kind import TaskKind

_IMPLEMENTATIONS = {
    Kind.CLASSIFICATION: "classification:Classification",
    Kind.REGRESSION: "regression:Regression",
    Kind.TAGGING: "tagging:Tagging",
    Kind.QUESTION_ANSWERING: "questions:QuestionAnswering",
}
"""Name -> module of this package and class."""


@functools.cache
def _load(kind: Kind) -> TaskKind:
    module, name = _IMPLEMENTATIONS[kind].split(":")
    return getattr(importlib.import_module(f"{__package__}.{module}"), name)()


class _Kinds(Mapping[Kind, TaskKind]):
    def __getitem__(self, kind: Kind) -> TaskKind:
        return _load(kind)

    def __iter__(self) -> Iterator[Kind]:
        return iter(_IMPLEMENTATIONS)

    def __len__(self) -> int:
        return len(_IMPLEMENTATIONS)


KINDS: Mapping[Kind, TaskKind] = _Kinds()
