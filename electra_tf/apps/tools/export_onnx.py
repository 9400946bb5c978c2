r"""Exports a fine-tuned model, a pre-trained discriminator or an encoder for ONNX Runtime.

    python -m electra_tf.apps.tools.export_onnx --model_dir=runs/cola --output=cola_onnx
    python -m electra_tf.apps.tools.export_onnx --model_dir=runs/cola --output=cola_int8 \
        --quantization=dynamic_int8

The command compares the outputs with the trained network before it writes --output. See
docs/how_to/export.md.
"""

import functools

from absl import flags

from electra_tf.core import command_line, storage


def main() -> None:
    """Reads the networks and writes the directory."""
    values = flags.FLAGS
    directory = storage.require_local(storage.utf8_path(values.output), "--output",
                                      "ONNX Runtime reads only files of this machine")
    import tensorflow as tf  # TensorFlow takes seconds to import.

    from electra_tf.export import card, comparison, onnx_graph, servable
    from electra_tf.formats import pretrained

    tf.config.set_visible_devices([], "GPU")  # ONNX Runtime computes on the CPU.
    source = storage.path(values.model_dir)
    checkpoint = pretrained.read(source)
    onnx_graph.export(
        servable.build(checkpoint), checkpoint.text, directory,
        comparison.Quantization(values.quantization), lambda unfinished: card.write(
            unfinished, checkpoint, source, title=directory.name, onnx=values.quantization))


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_string("model_dir", None, "Directory of the run.", required=True)
    flags.DEFINE_string("output", None, "Directory to write, which must not exist.", required=True)
    flags.DEFINE_enum("quantization", "none", ["none", "dynamic_int8"], "Number type of weights "
                      "and matmuls. none is float32.")


run = functools.partial(command_line.run, main, define, summary=__doc__)

if __name__ == "__main__":
    run()
