r"""Exports a fine-tuned model, a pre-trained discriminator or an encoder for ONNX Runtime.

    python -m electra_tf.apps.tools.export_onnx --model_dir=runs/cola --output=cola_onnx
    python -m electra_tf.apps.tools.export_onnx --model_dir=runs/cola --output=cola_int8 \
        --quantization=dynamic_int8 --dev=glue/CoLA/dev.tsv

Writes a directory with model.onnx, tokenizer.json, config.json with the labels, and a model card.
The command compares the outputs with the trained network before it writes --output. See
docs/how_to/onnx.md.
"""

import functools

from absl import flags

from electra_tf.platform import command_line, storage
from electra_tf.platform.errors import UserError


def main() -> None:
    """Reads the networks and writes the directory."""
    values = flags.FLAGS
    directory = storage.require_local(storage.utf8_path(values.output), "--output",
                                      "ONNX Runtime reads only files of this machine")
    if directory.exists():
        raise UserError(f"{directory} exists already; give another --output.")
    import tensorflow as tf  # TensorFlow takes seconds to import.

    from electra_tf.export import card, comparison, onnx_directory, servable
    from electra_tf.finetuning.results import score_table, threshold_of
    from electra_tf.formats import pretrained
    from electra_tf.tasks import registry
    from electra_tf.tasks.files import Files

    tf.config.set_visible_devices([], "GPU")  # ONNX Runtime computes on the CPU.
    source = storage.path(values.model_dir)
    networks = pretrained.read(source)
    model = servable.build(networks, threshold_of(source))
    dev = ()
    if values.dev:
        if not isinstance(model, servable.ServedTask):
            raise UserError(f"--dev scores a fine-tuned model, and {source} is a pre-trained one; "
                            "leave it out.")
        task = registry.load_dev(model.network.spec, None, Files(
            dev=tuple(map(storage.path, values.dev)), texts=tuple(values.text_columns),
            label=values.label_column, key=values.key_column))
        print(*task.notes, sep="\n", end="\n" if task.notes else "", flush=True)
        dev = task.dev["dev"]
    scores = onnx_directory.export(
        model, networks.text, directory, comparison.Quantization(values.quantization), dev,
        lambda unfinished: card.write(
            unfinished, networks, source, title=directory.name, onnx=values.quantization))
    if len(scores) > 1:
        exact, rounded = scores.values()
        scores["difference"] = {name: rounded[name] - exact[name] for name in exact}
    if scores:
        print("\n" + score_table(f"{len(dev):,} examples of dev", scores["none"], scores))


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_string("model_dir", None, "Directory of the run.", required=True)
    flags.DEFINE_string("output", None, "Directory to write, which must not exist.", required=True)
    flags.DEFINE_enum("quantization", "none", ["none", "dynamic_int8"], "Number type of weights "
                      "and matmuls. none is float32.")
    flags.DEFINE_list("dev", None, "Labelled files, as for --dev of run_finetuning.py. The "
                      "command prints the scores of the exported model on them, and the points "
                      "that dynamic_int8 loses.")
    flags.DEFINE_list("text_columns", [], "Columns of --dev with the texts. Default: as in "
                      "training.")
    flags.DEFINE_string("label_column", "", "Column of --dev with labels. Default: as in training.")
    flags.DEFINE_string("key_column", "", "Column of --dev with ids. Default: as in training.")


run = functools.partial(command_line.run, main, define, summary=__doc__)

if __name__ == "__main__":
    run()
