r"""Exports a fine-tuned model or a pre-trained discriminator for TensorFlow Lite.

    python -m electra_tf.apps.tools.export_tflite --model_dir=runs/cola --output=cola.tflite
    python -m electra_tf.apps.tools.export_tflite --model_dir=runs/cola --output=cola_int8.tflite \
        --quantization=dynamic_int8

The file takes token ids: input_ids, token_type_ids and attention_mask, int32 [B, L]. It returns the
outputs of the signature token_ids that export_model writes. The command compares them with the
outputs of the trained network before it writes --output.
"""

import functools

from absl import flags

from electra_tf.core import command_line, storage
from electra_tf.core.atomic_file import make_directory
from electra_tf.core.errors import UserError


def main() -> None:
    """Reads the networks and writes the file."""
    values = flags.FLAGS
    path = storage.require_local(storage.utf8_path(values.output), "--output",
                                 "TensorFlow Lite reads only files of this machine")
    if path.exists():
        raise UserError(f"{path} exists already; give another --output.")
    import tensorflow as tf  # TensorFlow takes seconds to import.

    from electra_tf.export import comparison, servable, tflite
    from electra_tf.formats import pretrained

    tf.config.set_visible_devices([], "GPU")  # TensorFlow Lite computes on the CPU.
    model = servable.build(pretrained.read(storage.path(values.model_dir)))
    make_directory(path.parent)
    tflite.export(model, path, comparison.Quantization(values.quantization), values.sequence_length)


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_string("model_dir", None, "Directory of the run.", required=True)
    flags.DEFINE_string("output", None, "File to write, which must not exist.", required=True)
    flags.DEFINE_enum("quantization", "none", ["none", "float16", "dynamic_int8"],
                      "Number type of the stored weights. none is float32.")
    flags.DEFINE_integer("sequence_length", None, "Fixed input size: one row of this many tokens, "
                         "as some accelerators need; pad shorter texts with 0 in attention_mask. "
                         "Default: any number of rows of any length.", lower_bound=1)


run = functools.partial(command_line.run, main, define, summary=__doc__)

if __name__ == "__main__":
    run()
