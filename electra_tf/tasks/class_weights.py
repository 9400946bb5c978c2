"""Class weights: factors of each label's loss, given or balanced."""

import collections
import math
from collections.abc import Sequence

from electra_tf.platform.errors import UserError, shown
from electra_tf.tasks import files
from electra_tf.tasks.task import Example, TaskSpec

BALANCED = "balanced"


def balanced_weights(labels: Sequence[str], examples: Sequence[Example]) -> tuple[float, ...]:
    """Returns n / (k n_c) for each label, as scikit-learn's `compute_class_weight`.

    Of n labels (of examples or words), n_c are c; k different ones occur. 1 for one that doesn't.
    """
    counts = collections.Counter(
        label for example in examples for label in files.labels_of(example))
    mean = counts.total() / len(counts)
    return tuple(mean / counts[label] if counts[label] else 1.0 for label in labels)


def given_weights(text: str, spec: TaskSpec) -> tuple[float, ...]:
    """Returns the weights in `--class_weights`, "a=2,b=0.5" or "2,0.5"; () for other values.

    Names are labels or `label_words`. `UserError` for unknown, repeated and missing labels, and for
    weights that aren't finite and positive.
    """
    if text in ("", BALANCED):
        return ()
    words = spec.label_words
    fix = (f"Give {BALANCED}, or a weight for each label: "
           f"{','.join(f'{word}=1' for word in words[:20])}{',...' if words[20:] else ''}.")
    index = dict(zip((*words, *spec.labels), 2 * [*range(len(words))], strict=True))
    parts = [part.strip() for part in text.split(",")]
    weights: dict[int, float] = {}
    for position, part in enumerate(parts):
        name, equals, number = part.rpartition("=")
        label = index.get(name.strip()) if equals else position
        try:
            weight = float(number)
        except ValueError:
            weight = math.nan
        if label is None:
            raise UserError(f"--class_weights: {shown(name)} is no label of this task. {fix}")
        if label in weights:
            raise UserError(f"--class_weights: {shown(words[label])} has two weights. {fix}")
        if not 0 < weight < math.inf:
            raise UserError("--class_weights must be numbers above 0. Received: "
                            f"{shown(number)}. {fix}")
        weights[label] = weight
    if sorted(weights) != [*range(len(words))]:
        raise UserError(f"--class_weights has {len(weights)} weights for {len(words)} labels. "
                        f"{fix}")
    return tuple(weights[label] for label in range(len(words)))
