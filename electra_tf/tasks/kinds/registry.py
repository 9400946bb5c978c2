"""The task kinds by name. A new kind is registered here and in `tasks/examples.py`."""

from collections.abc import Mapping

from electra_tf.tasks.examples import Kind
from electra_tf.tasks.kinds.kind import TaskKind
from electra_tf.tasks.kinds.questions import QuestionAnswering
from electra_tf.tasks.kinds.tagging import Tagging
from electra_tf.tasks.kinds.texts import Classification, Regression

KINDS: Mapping[Kind, TaskKind] = {task.kind: task for task in (
    Classification(), Regression(), Tagging(), QuestionAnswering())}
