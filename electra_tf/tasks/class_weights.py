"""Class weights: factors of each label's loss, given or balanced."""

import collections
import contextlib
import math
from collections.abc import Sequence

from electra_tf.core.errors import UserError, one_line, shown
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

    Names are labels or `label_words`. `UserError` unless each label has one finite weight above 0.
    """
    if text in ("", BALANCED):
        return ()
    words = spec.label_words
    parts = [part.rpartition("=") for part in text.split(",")]
    names = [name.strip() for name, _, _ in parts] if "=" in text else [*words]
    index = dict(zip((*words, *spec.labels), 2 * [*range(len(words))], strict=True))
    weights: dict[int | None, float] = {}
    with contextlib.suppress(ValueError):
        weights = {index.get(name): float(number)
                   for name, (_, _, number) in zip(names, parts, strict=True)}
    if (len(weights) < len(words) or None in weights or len(parts) > len(words)
            or not all(0 < weight < math.inf for weight in weights.values())):
        raise UserError(f"--class_weights must be {BALANCED}, or a number above 0 for each label, "
                        f"such as {one_line(','.join(f'{word}=1' for word in words), 200)}. "
                        f"Received: {shown(text)}")
    return tuple(weights[label] for label in range(len(words)))
