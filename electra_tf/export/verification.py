"""Compares an exported model, loaded in a new process, with the trained one."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from electra_tf.export.signatures import DEFAULT, Served
from electra_tf.modeling.fused import inference_mode
from electra_tf.platform.errors import UserError

_ROOT = Path(__file__).parents[2]
Requests = Sequence[Mapping[str, Sequence[str]]]
"""Batches: column -> texts."""
PROBES = (
    ("The committee approved the new budget on Tuesday.",
     "In May the harbour of Oslo freezes rarely, the pilots said."),
    ("Good.", "It rained."),
    ("Café Müller's 3rd opening -- what a dreadful, wonderful evening it was!",
     "Pina Bausch first showed Café Müller in Wuppertal in May 1978; six people danced in it. "
     "The chairs, of which there were many, were hers."),
    ("", "Nothing stands in the other column."),
)
"""Texts in pairs, of different lengths. Tasks with one text take the first."""
TOLERANCE = {tf.float32: 1e-4, tf.bfloat16: 0.1}
"""Largest difference of a probability."""


def requests(columns: Sequence[str]) -> Requests:
    """Returns batches of several texts, and one of a single one."""
    whole = {name: [pair[number] for pair in PROBES] for number, name in enumerate(columns)}
    return whole, {name: texts[:1] for name, texts in whole.items()}


def compare(directory: Path, trained: Served, asked: Requests, dtype: tf.DType) -> float:
    """Compares the answers of an exported model and the trained one.

    Of weights in bfloat16 only fractions are compared, within a wider tolerance: where two labels
    or spans are nearly as likely, the other one may win.

    Returns:
        The largest difference between two numbers, as a share of the larger one above 1.

    Raises:
        UserError: they differ, or the model can't be loaded.
    """
    largest = 0.0
    for request, answers in zip(asked, ask_elsewhere(directory, asked), strict=True):
        with inference_mode():
            expected = trained.answer(*(tf.constant(texts) for texts in request.values()))
        for name, values in expected.items():
            found, wanted = np.asarray(answers[name]), np.array(_plain(values))
            if found.shape != wanted.shape:
                raise _differs(name, found, wanted)
            if not values.dtype.is_floating:
                if dtype == tf.float32 and not np.array_equal(found, wanted):
                    raise _differs(name, found, wanted)
                continue
            difference = float(np.max(
                np.abs(found - wanted) / np.maximum(1.0, np.abs(wanted)), initial=0.0))
            if not difference <= TOLERANCE[dtype]:
                raise _differs(name, found, wanted)
            largest = max(largest, difference)
    return largest


def ask_elsewhere(directory: Path, asked: Requests) -> list[dict[str, Any]]:
    """Loads a SavedModel in a new process and returns its answers to all requests."""
    # The command may have been started from anywhere.
    paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-m", "electra_tf.export.verification", str(directory.absolute())],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        input=json.dumps(asked), capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason"])[-1]
        raise UserError(f"the exported model can't be loaded again: {reason}")
    return json.loads(done.stdout.splitlines()[-1])


def _differs(name: str, found: Any, expected: Any) -> UserError:
    shown = [" ".join(str(value).split())[:120] for value in (found, expected)]
    return UserError(f"the exported model's {name} is {shown[0]}, the trained one's {shown[1]}; "
                     "nothing was exported.")


def _answer_here(directory: str, asked: Requests) -> None:
    import tensorflow_text  # noqa: F401  Registers the tokenizer's ops.

    answer = tf.saved_model.load(directory).signatures[DEFAULT]
    results = [answer(**{name: tf.constant(texts) for name, texts in request.items()})
               for request in asked]
    print(json.dumps([{name: _plain(value) for name, value in result.items()}
                      for result in results]))


def _plain(value: tf.Tensor) -> Any:
    array = value.numpy()
    return (np.char.decode(array.astype(bytes), "utf-8") if value.dtype == tf.string
            else array).tolist()


if __name__ == "__main__":
    _answer_here(sys.argv[1], json.loads(sys.stdin.read()))
