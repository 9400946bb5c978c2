"""Compares a TensorFlow Lite file with a network: outputs and latency.

The network is asked row by row, the file in one padded batch, so padding must change nothing.
"""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter

from electra_tf.export import verification
from electra_tf.export.refusals import TOKEN_INPUTS
from electra_tf.export.signatures import TOKEN_IDS
from electra_tf.platform import native_logging
from electra_tf.platform.errors import UserError
from electra_tf.platform.machine import usable_cores
from electra_tf.platform.storage import Path
from electra_tf.text.rows import RowEncoder, Tokens

Answers = Mapping[str, np.ndarray]
Network = Callable[[Sequence[np.ndarray]], Answers]
"""Maps ids, segment ids and mask, int32 [B, L] each, to outputs."""
RUNS = 20


def network(signature: tf.types.experimental.ConcreteFunction) -> Network:
    """Returns a function of arrays that asks a SavedModel's signature `token_ids`."""
    def ask(inputs: Sequence[np.ndarray]) -> Answers:
        named = zip(TOKEN_INPUTS, map(tf.constant, inputs), strict=True)
        return {name: value.numpy() for name, value in signature(**dict(named)).items()}

    return ask


def load(directory: Path) -> Network:
    """Returns the network that a SavedModel holds.

    Raises:
        UserError: none is there, or not one that was exported here.
    """
    try:
        model = tf.saved_model.load(str(directory))
    except (OSError, tf.errors.OpError) as error:
        raise UserError(f"--saved_model={directory} can't be loaded; name the directory of a "
                        "version, like served/cola/1.") from error
    if TOKEN_IDS not in model.signatures:
        raise UserError(f"--saved_model={directory} has no signature {TOKEN_IDS}; export it with "
                        "--mode=export.")
    return network(model.signatures[TOKEN_IDS])


class Lite:
    """A file in TensorFlow Lite's interpreter."""

    def __init__(self, path: Path, length: int | None):
        """Loads a file; `length` of its single row, None if it takes any rows."""
        self.threads = usable_cores()
        self._length = length
        with native_logging.stderr_closed():  # It tells that it made its delegate.
            interpreter = Interpreter(str(path), num_threads=self.threads)
            interpreter.allocate_tensors()
        self._runner = interpreter.get_signature_runner(TOKEN_IDS)

    def run(self, inputs: Sequence[np.ndarray]) -> Answers:
        """Answers rows that have the file's shape."""
        return self._runner(**dict(zip(TOKEN_INPUTS, inputs, strict=True)))

    def answers(self, tokens: Sequence[np.ndarray]) -> Answers:
        """Answers rows [B, L], one by one if the file takes a single one."""
        if self._length is None:
            return self.run(tokens)
        missing = self._length - tokens[0].shape[1]
        padded = [np.pad(array, [(0, 0), (0, missing)]) for array in tokens]
        rows = [self.run([array[row:row + 1] for array in padded])
                for row in range(len(tokens[0]))]
        return {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}


def probes(texts: RowEncoder, columns: Sequence[str], length: int | None) -> list[np.ndarray]:
    """Returns rows of several lengths: ids, segment ids and mask, cut at `length`."""
    whole, *_ = verification.requests(columns)
    tokens = Tokens(*texts.encode(*(tf.constant(column) for column in whole.values())))
    return [tf.cast(part, tf.int32).numpy()[:, :length] for part in tokens]


def compare(found: Answers, network: Network, tokens: Sequence[np.ndarray], name: str,
            tolerance: float) -> float:
    """Compares a file's answers with a network's.

    Args:
        found: to rows padded to the longest, or beyond.
        network: is asked row by row.
        tokens: the rows.
        name: of the network, for people.
        tolerance: largest difference, as a share of a number above 1.

    Returns:
        The largest difference.

    Raises:
        UserError: they differ by more.
    """
    largest = 0.0
    for row, size in enumerate(tokens[2].sum(axis=1)):
        answers = network([part[row:row + 1, :size] for part in tokens])
        if answers.keys() != found.keys():
            raise UserError(f"{name} answers {', '.join(sorted(answers))}, the converted one "
                            f"{', '.join(sorted(found))}; nothing was exported.")
        of_row = _comparable({key: value[row:row + 1] for key, value in found.items()},
                             tokens[0].shape[1])
        for key, numbers in _comparable(answers, size).items():
            without_padding = of_row[key][tuple(slice(end) for end in numbers.shape)]
            scale = np.maximum(1.0, np.abs(numbers))
            difference = float(np.max(np.abs(without_padding - numbers) / scale))
            if not difference <= tolerance:
                raise UserError(f"{key} is {difference:.1e} away from that of {name}, more than "
                                f"{tolerance:g}; nothing was exported.")
            largest = max(largest, difference)
    return largest


def milliseconds(network: Network, length: int) -> float:
    """Returns the median time for one row."""
    inputs = [np.ones([1, length], np.int32) for _ in TOKEN_INPUTS]
    network(inputs)  # Memory is planned, or a graph rewritten.
    times = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        network(inputs)
        times.append(time.perf_counter() - begin)
    return 1000.0 * statistics.median(times)


def _comparable(answers: Answers, length: int) -> Answers:
    """Turns beams, whose order is anyone's where two are as likely, into spans' probabilities."""
    if "start_index" not in answers:
        return answers
    rows = np.arange(len(answers["start_index"]))[:, np.newaxis, np.newaxis]
    spans = np.zeros([len(rows), length, length])
    spans[rows, answers["start_index"][:, :, np.newaxis], answers["end_index"]] = np.exp(
        answers["start_log_probs"][:, :, np.newaxis] + answers["end_log_probs"])
    impossible = {key: value for key, value in answers.items() if key == "impossible"}
    return {"spans": spans} | impossible
