"""Writes a SavedModel for TensorFlow Serving: built, reloaded elsewhere, compared, then renamed."""

import dataclasses
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import tensorflow as tf

from electra_tf.atomic_file import TEMPORARY_PREFIX, make_directory, write_error
from electra_tf.checkpoints.pretrained import Pretrained, TextSettings
from electra_tf.checkpoints.weights import assign_weights
from electra_tf.command_line import UserError
from electra_tf.config.finetuning import TaskConfig
from electra_tf.config.model import EncoderConfig
from electra_tf.modeling.electra import Discriminator, TaskModel, electra_encoder
from electra_tf.modeling.encoder import Encoder
from electra_tf.modeling.inference import InferenceEncoder
from electra_tf.serving import verification, warmup
from electra_tf.serving.signatures import TASKS, Detector, Served
from electra_tf.serving.texts import Texts
from electra_tf.tasks.task import TaskSpec
from electra_tf.text.tokenizer import Tokenizer

PRECISIONS = {"float32": tf.float32, "bfloat16": tf.bfloat16}
WAYS = 2
"""Of a layer's computation: one request takes two cores."""
ServedBy = Callable[[InferenceEncoder | Encoder], Served]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Target:
    """Where a model goes, and with which number type."""

    directory: Path
    """`directory/version`, which doesn't exist yet."""
    dtype: tf.DType

    @classmethod
    def of(cls, export_dir: str, version: str, precision: str) -> "Target":
        """Checks what flags say.

        Raises:
            UserError: a version that is no positive integer or exists already, another precision.
        """
        if not (version.isascii() and version.isdigit() and int(version) > 0):
            raise UserError("--export_version must be a positive integer, for TensorFlow Serving "
                            f"looks for numbers. Received: {version!r}")
        if precision not in PRECISIONS:
            raise UserError(f"--serving_precision must be one of {', '.join(PRECISIONS)}. "
                            f"Received: {precision!r}")
        directory = Path(export_dir) / str(int(version))
        if directory.exists():
            raise UserError(f"{directory} exists already; give another --export_version or "
                            "--export_dir.")
        make_directory(directory.parent)
        return cls(directory=directory, dtype=PRECISIONS[precision])


def export_task(model: TaskModel, spec: TaskSpec, config: TaskConfig, text: TextSettings,
                threshold: float | None, target: Target) -> None:
    """Exports a fine-tuned model.

    Args:
        model: with float32 weights and arithmetic.
        spec: its task.
        config: how its examples become rows.
        text: how it reads text.
        threshold: of the logit that there is no answer; None gives every answer.
        target: where to.

    Raises:
        UserError: it can't be written, or answers otherwise than the trained model.
    """
    texts = _texts(text, min(config.max_seq_length, model.encoder.config.max_position_embeddings))
    _export(lambda encoder: TASKS[spec.kind](encoder, model.head, texts, spec, config, threshold),
            model.encoder, target)


def export_discriminator(networks: Pretrained, target: Target) -> None:
    """Exports a pre-trained discriminator.

    Raises:
        UserError: the networks have none; otherwise as for `export_task`.
    """
    config = networks.model.discriminator
    discriminator = Discriminator(
        electra_encoder(config, seed=0, policy="float32"), seed=0, policy="float32")
    assign_weights(discriminator.variables, networks.weights, networks.source)
    texts = _texts(networks.text, config.max_position_embeddings)
    _export(lambda encoder: Detector(encoder, discriminator.head, texts), discriminator.encoder,
            target)


def _export(served_by: ServedBy, encoder: Encoder, target: Target) -> None:
    inference = InferenceEncoder(encoder.config, target.dtype, _ways(encoder.config))
    inference.take(encoder)
    served, final = served_by(inference), target.directory
    signatures = served.signatures()
    unfinished = final.with_name(f"{TEMPORARY_PREFIX}{os.getpid()}-{final.name}")
    try:
        tf.saved_model.save(
            served, str(unfinished), signatures=signatures,
            options=tf.saved_model.SaveOptions(experimental_custom_gradients=False))
        requests = verification.requests(served.columns)
        warmup.write(unfinished, final.parent.name, requests)
        difference = verification.compare(unfinished, served_by(encoder), requests, target.dtype)
        unfinished.rename(final)
    except OSError as error:
        raise write_error(final, error) from error
    except tf.errors.OpError as error:
        raise UserError(f"cannot write {final}: {error.message}") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    size = sum(path.stat().st_size for path in final.rglob("*") if path.is_file())
    print(f"exported {final}: {target.dtype.name}, {size / 1e6:,.1f} MB, signatures "
          f"{', '.join(signatures)}\n"
          f"compared with the trained model in a new process: probabilities within "
          f"{difference:.1e}", flush=True)


def _texts(text: TextSettings, max_length: int) -> Texts:
    tokenizer = Tokenizer(text.vocabulary, text.lower_case, text.strip_accents)
    return Texts(tokenizer, text.vocabulary, max_length)


def _ways(config: EncoderConfig) -> int:
    sizes: Sequence[int] = (config.num_heads, config.intermediate_size)
    return WAYS if all(size % WAYS == 0 for size in sizes) else 1
