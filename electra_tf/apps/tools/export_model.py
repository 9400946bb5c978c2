r"""Exports a fine-tuned model, a pre-trained discriminator or an encoder.

    python -m electra_tf.apps.tools.export_model --model_dir=runs/cola --output=served/cola
    python -m electra_tf.apps.tools.export_model --model_dir=runs/cola --output=cola_onnx \
        --format=onnx --quantization=dynamic_int8
    python -m electra_tf.apps.tools.export_model --model_dir=runs/cola --output=cola.tflite \
        --format=tflite

The first command writes served/cola/1 for TensorFlow Serving, a SavedModel that takes strings (see
docs/how_to/serving.md). The others write a directory for ONNX Runtime and a file for TensorFlow
Lite (see docs/how_to/export.md). All compare the outputs with the trained network's first.
"""

import functools

from absl import flags

from electra_tf.core import command_line, storage
from electra_tf.core.atomic_file import make_directory
from electra_tf.core.errors import UserError

UNUSED = {"saved_model": ("quantization", "sequence_length"),
          "onnx": ("export_version", "serving_precision", "sequence_length"),
          "tflite": ("export_version", "serving_precision")}
"""Format -> flags that have no effect with it."""


def main() -> None:
    """Reads the networks and writes them in the format."""
    # What can be refused before TensorFlow, which takes seconds to import.
    values = flags.FLAGS
    command_line.refuse_unused(UNUSED[values.format], f"--format={values.format}")
    source, output = storage.path(values.model_dir), storage.utf8_path(values.output)
    if values.format != "saved_model":
        output = storage.require_local(
            output, "--output", "the runtimes of this format read only files of this machine")
        if output.exists():
            raise UserError(f"{output} exists already; give another --output.")
    if values.format == "onnx" and values.quantization == "float16":
        raise UserError("--quantization=float16 is for --format=tflite; ONNX Runtime's are none "
                        "and dynamic_int8.")
    import tensorflow as tf

    from electra_tf.export import card, comparison, saved_model, servable
    from electra_tf.formats import pretrained

    # The version of a SavedModel must be new. The other runtimes compute on the CPU.
    if values.format == "saved_model":
        output = saved_model.new_version(output, values.export_version)
    else:
        tf.config.set_visible_devices([], "GPU")
    checkpoint = pretrained.read(source)
    model = servable.build(checkpoint)
    write_card = functools.partial(card.write, checkpoint=checkpoint, source=source)
    quantization = comparison.Quantization(values.quantization)
    match values.format:
        case "saved_model":
            saved_model.export(model, output, values.serving_precision, functools.partial(
                write_card, title=str(output), saved_model=True))
        case "onnx":
            from electra_tf.export import onnx_graph

            onnx_graph.export(model, checkpoint.text, output, quantization, functools.partial(
                write_card, title=output.name, onnx=values.quantization))
        case "tflite":
            from electra_tf.export import tflite

            make_directory(output.parent)
            tflite.export(model, output, quantization, values.sequence_length)


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_string("model_dir", None, "Directory of a run, or another checkpoint with a "
                        "discriminator or a fine-tuned model.", required=True)
    flags.DEFINE_string("output", None, "What to write: of a SavedModel the directory with one "
                        "subdirectory per version, as for TensorFlow Serving; otherwise a "
                        "directory (onnx) or a file (tflite), which must not exist.", required=True)
    flags.DEFINE_enum("format", "saved_model", ["saved_model", "onnx", "tflite"], "saved_model for "
                      "TensorFlow Serving, onnx for ONNX Runtime, tflite for TensorFlow Lite.")
    flags.DEFINE_string("export_version", "1", "Version of the SavedModel, a positive integer. "
                        "Servers use the highest version.")
    flags.DEFINE_enum("serving_precision", "float32", ["float32", "bfloat16"], "Number type of the "
                      "SavedModel's weights and matmuls. bfloat16 halves the size, and is faster "
                      "on CPUs with bfloat16 instructions.")
    flags.DEFINE_enum("quantization", "none", ["none", "float16", "dynamic_int8"], "Number type of "
                      "the weights for ONNX Runtime and TensorFlow Lite. none is float32, float16 "
                      "is for TensorFlow Lite alone; dynamic_int8 also rounds inputs of matmuls.")
    flags.DEFINE_integer("sequence_length", None, "Fixed input size for TensorFlow Lite: one row "
                         "of this many tokens, as some accelerators need; pad shorter texts with 0 "
                         "in attention_mask. Default: any number of rows of any length.",
                         lower_bound=1)


run = functools.partial(command_line.run, main, define, summary=__doc__)

if __name__ == "__main__":
    run()
