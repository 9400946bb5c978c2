r"""Exports a fine-tuned model or a pre-trained discriminator for TensorFlow Lite.

    python -m electra_tf.apps.tools.export_tflite --model_dir=runs/cola --output=cola.tflite
    python -m electra_tf.apps.tools.export_tflite --model_dir=runs/cola --output=cola_int8.tflite \
        --quantization=dynamic_int8 --saved_model=served/cola/1

The file takes token ids: input_ids, token_type_ids and attention_mask, int32 [B, L]. It returns the
outputs of the signature token_ids that run_finetuning.py --mode=export writes (export_model for a
discriminator). It is run and compared with the trained network before it is renamed.
"""

import contextlib

from absl import flags

from electra_tf.platform import command_line, storage
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path

GROUPS = {"Model": ("model_dir", "output", "saved_model"),
          "Form": ("quantization", "sequence_length")}


def main() -> None:
    """Reads, converts, compares."""
    values = flags.FLAGS
    for name in ("model_dir", "output"):
        if not values[name].value:
            raise UserError(f"--{name} is needed: {values[name].help}")
    from electra_tf.export import tflite, tflite_check  # TensorFlow takes seconds to import.

    target = tflite.TfliteTarget.of(values.output, values.quantization, values.sequence_length)
    _use_as_in_serving()
    model = _servable(storage.path(values.model_dir))
    references = {values.saved_model: tflite_check.load(storage.path(values.saved_model))
                  } if values.saved_model else {}
    tflite.export(model, target, references)


def _use_as_in_serving() -> None:
    """Lets TensorFlow compute on the CPU, as TensorFlow Lite does, with a server's threads."""
    import tensorflow as tf

    from electra_tf.platform.machine import usable_cores

    with contextlib.suppress(RuntimeError):  # TensorFlow has its devices and threads already.
        tf.config.set_visible_devices([], "GPU")
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(usable_cores())


def _servable(model_dir: Path):
    """Returns the network of a directory."""
    from electra_tf.checkpoints import formats
    from electra_tf.export import finetuned, servable
    from electra_tf.finetuning import outputs, setup

    networks = formats.read(model_dir)
    if networks.task is None:
        return servable.of_discriminator(networks)
    run = setup.prepare_trained(model_dir, {
        "training.precision": "float32", "runtime.distribution_strategy": "one_device",
        "runtime.cpu_parts": 1})  # More would set threads for training.
    return finetuned.of_task(run.trained_model(), run.spec, run.config.task, run.text,
                             outputs.threshold_of(model_dir))


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_string("model_dir", None, "Directory of the run.")
    flags.DEFINE_string("output", None, "File to write, which must not exist.")
    flags.DEFINE_string("saved_model", None, "Version directory of a float32 SavedModel of the "
                        "same run, to compare with as well.")
    flags.DEFINE_string("quantization", "none", "Weights: none, float16 or dynamic_int8.")
    flags.DEFINE_integer("sequence_length", None, "Accept one row of this many tokens, which "
                         "some accelerators need; pad shorter texts with 0 in attention_mask. "
                         "Default: any number of rows of any length.")


def run() -> None:
    """Runs the command line."""
    define()
    command_line.run(main, summary=__doc__, groups=GROUPS)


if __name__ == "__main__":
    run()
