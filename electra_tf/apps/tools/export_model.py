r"""Exports a fine-tuned model or a pre-trained discriminator as a SavedModel that takes strings.

    python -m electra_tf.apps.tools.export_model --model_dir=runs/cola --export_dir=served/cola
    python -m electra_tf.apps.tools.export_model --model_dir=runs/small --export_dir=served/small

Writes served/cola/1 for TensorFlow Serving. The signatures of a discriminator detect replaced words
and embed texts. See docs/how_to/serving.md.
"""

import functools

from absl import flags

from electra_tf.core import command_line, storage


def main() -> None:
    """Reads the networks and writes the SavedModel."""
    values = flags.FLAGS
    # TensorFlow takes seconds to import.
    from electra_tf.export import card, saved_model, servable
    from electra_tf.formats import pretrained

    # The version must be new; the exported signatures are compared with the network read here.
    source, export_dir = storage.path(values.model_dir), storage.utf8_path(values.export_dir)
    target = saved_model.new_version(export_dir, values.export_version)
    checkpoint = pretrained.read(source)
    saved_model.export(
        servable.build(checkpoint), target, values.serving_precision,
        lambda directory: card.write(
            directory, checkpoint, source, title=str(target), saved_model=True))


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_string("model_dir", None, "Directory of a run, or another checkpoint with a "
                        "discriminator or a fine-tuned model.", required=True)
    flags.DEFINE_string("export_dir", None, "Directory to export to, as for TensorFlow Serving: "
                        "with one subdirectory per version.", required=True)
    flags.DEFINE_string("export_version", "1", "Version of the exported model, a positive integer. "
                        "Servers use the highest version.")
    flags.DEFINE_enum("serving_precision", "float32", ["float32", "bfloat16"], "Number type of "
                      "weights and matmuls. bfloat16 halves the size, and is faster on CPUs "
                      "with bfloat16 instructions.")


run = functools.partial(command_line.run, main, define, summary=__doc__)

if __name__ == "__main__":
    run()
