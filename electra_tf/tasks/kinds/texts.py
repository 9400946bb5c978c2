"""What classification and regression share: texts or pairs, each with one label."""

from collections.abc import Sequence

import numpy as np

from electra_tf.data.buckets import Row
from electra_tf.tasks.encoding import encode_texts
from electra_tf.tasks.examples import TextExample
from electra_tf.tasks.kinds.kind import Record, TaskKind
from electra_tf.text.rows import RowEncoder


class TextKind(TaskKind):
    """One or two texts with a label."""

    suffix = ".tsv"

    def texts(self, example: TextExample) -> tuple[str, ...]:
        """Its one or two."""
        return example.texts

    def written(self, records: Sequence[Record]) -> str:
        """Key and prediction, a line each."""
        lines = ["key\tprediction", *(f"{one['key']}\t{one['prediction']}" for one in records)]
        return "\n".join(lines) + "\n"


def labelled_rows(examples: Sequence[TextExample], encoder: RowEncoder,
                  labels: Sequence[np.ndarray]) -> list[Row]:
    """Returns one row per example, with the target "label"."""
    tokens = encode_texts([example.texts for example in examples], encoder)
    return [Row(*row, {"label": label}) for row, label in zip(tokens, labels, strict=True)]
