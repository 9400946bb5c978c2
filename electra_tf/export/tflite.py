"""Writes a TensorFlow Lite file: token ids in, what the SavedModel's `token_ids` says of them out.

It holds TensorFlow Lite's own ops alone, so that every runtime of it can run the file. Turning text
into ids and ids into words is left to the program around it.
"""

import dataclasses
import enum
import tempfile
from collections.abc import Mapping

import tensorflow as tf

from electra_tf.export import tflite_check
from electra_tf.export.servable import Servable
from electra_tf.export.signatures import TOKEN_IDS, Served
from electra_tf.export.tflite_check import Network
from electra_tf.modeling.task_heads import RecurrentHead
from electra_tf.platform import native_logging, storage
from electra_tf.platform.atomic_file import make_directory, replacing
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.training.cores import graph_rewriting

LENGTHS = (32, 128)
"""Tokens of the rows that are timed, where a file takes any."""


class Quantization(enum.StrEnum):
    """Storage of weights; arithmetic is float32 except for matmuls of `DYNAMIC_INT8`."""

    NONE = "none"
    FLOAT16 = "float16"
    DYNAMIC_INT8 = "dynamic_int8"


TOLERANCE = {Quantization.NONE: 1e-4, Quantization.FLOAT16: 1e-2, Quantization.DYNAMIC_INT8: 0.5}
"""Largest difference of a number, as a share of it above 1. Eight bits are refused nonsense alone:
what they cost is a matter of the task, and printed."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TfliteTarget:
    """The file to write."""

    path: Path
    """Path that doesn't exist yet."""
    quantization: Quantization
    sequence_length: int | None
    """Tokens of the single row that the file takes; None: any rows of any length."""

    @classmethod
    def of(cls, output: str, quantization: str, sequence_length: int | None) -> "TfliteTarget":
        """Checks what flags say.

        Raises:
            UserError: another quantization, no length, a file that exists already.
        """
        if quantization not in set(Quantization):
            raise UserError(f"--quantization must be one of {', '.join(Quantization)}. "
                            f"Received: {quantization!r}")
        if sequence_length is not None and sequence_length < 1:
            raise UserError("--sequence_length must be at least 1; leave it out for rows of any "
                            f"length. Received: {sequence_length}")
        path = storage.require_local(storage.path(output), "--output",
                                     "TensorFlow Lite reads files of this machine alone")
        if path.exists():
            raise UserError(f"{path} exists already; give another --output.")
        make_directory(path.parent)
        return cls(path=path, quantization=Quantization(quantization),
                   sequence_length=sequence_length)


def export(model: Servable, target: TfliteTarget, references: Mapping[str, Network]) -> None:
    """Converts a model, runs the result, and keeps it if it says what the model says.

    Args:
        model: with float32 weights.
        target: where to.
        references: what else it has to agree with, by a name for people.

    Raises:
        UserError: a length that the network hasn't got or must have; a file that can't be written
            or answers otherwise.
    """
    trained = model.trained()
    _check_length(trained, target.sequence_length)
    inference = model.for_inference(tf.float32).for_token_ids((None, None))
    references = {"the trained network": tflite_check.network(inference)} | dict(references)
    with replacing(target.path) as unfinished:
        unfinished.write_bytes(_converted(trained, target))
        lite = tflite_check.Lite(unfinished, target.sequence_length)
        with graph_rewriting():
            report = _compared(lite, trained, references, target)
    size = target.path.stat().st_size
    takes = ("rows of any length" if target.sequence_length is None
             else f"one row of {target.sequence_length} tokens")
    print(f"exported {target.path}: quantization {target.quantization}, {size / 1e6:,.1f} MB, "
          f"takes {takes}\n{report}", flush=True)


def _check_length(trained: Served, length: int | None) -> None:
    positions = trained.encoder.config.max_position_embeddings
    if length is not None and length > positions:
        raise UserError(f"--sequence_length={length} is more than the network's {positions} "
                        "positions.")
    if length is None and isinstance(trained.head, RecurrentHead):
        raise UserError("the recurrent head of --feature_based can be converted for one length "
                        "alone; give --sequence_length.")


def _converted(trained: Served, target: TfliteTarget) -> bytes:
    """Returns the file's content."""
    fixed = target.sequence_length
    function = trained.for_token_ids((None, None) if fixed is None else (1, fixed))
    with tempfile.TemporaryDirectory() as directory:
        # By way of a SavedModel the signature keeps its name.
        tf.saved_model.save(
            trained, directory, signatures={TOKEN_IDS: function},
            options=tf.saved_model.SaveOptions(experimental_custom_gradients=False))
        converter = tf.lite.TFLiteConverter.from_saved_model(
            directory, signature_keys=[TOKEN_IDS])
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
        if target.quantization is not Quantization.NONE:
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if target.quantization is Quantization.FLOAT16:
            converter.target_spec.supported_types = [tf.float16]
        with native_logging.stderr_closed():  # It lists the options that it ignores.
            return converter.convert()


def _compared(lite: tflite_check.Lite, trained: Served, references: Mapping[str, Network],
              target: TfliteTarget) -> str:
    """Returns lines for people: differences, and how long a row takes."""
    tokens = tflite_check.probes(trained.texts, trained.columns, target.sequence_length)
    found = lite.answers(tokens)
    lines = [f"compared with {name}: within " + format(tflite_check.compare(
        found, network, tokens, name, TOLERANCE[target.quantization]), ".1e")
        for name, network in references.items()]
    positions = trained.encoder.config.max_position_embeddings
    lengths = ([target.sequence_length] if target.sequence_length is not None
               else sorted({min(length, positions) for length in LENGTHS}))
    networks = {"TensorFlow Lite": lite.run} | dict(references)
    for length in lengths:
        times = ", ".join(f"{name} {tflite_check.milliseconds(network, length):.1f} ms"
                          for name, network in networks.items())
        lines.append(f"a row of {length} tokens ({lite.threads} threads): {times}")
    return "\n".join(lines)
