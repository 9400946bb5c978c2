r"""Converts networks between this program, Google's code and Hugging Face.

    python -m electra_tf.apps.tools.convert_checkpoint --from=runs/small --to=small_hf \
        --to_format=hugging_face
    python -m electra_tf.apps.tools.convert_checkpoint --from=electra_small --to=small \
        --to_format=run

The command detects the format of --from. A weight that the other format lacks is an error, and --to
is not created. run_pretraining.py and run_finetuning.py accept all formats as --init_checkpoint.
"""

import functools

from absl import flags

from electra_tf.core import command_line, storage
from electra_tf.text.normalization import Normalization


def main() -> None:
    """Reads the networks, and writes them with a model card in the other format."""
    values = flags.FLAGS
    from electra_tf.export import card
    from electra_tf.export.atomic_directory import atomic_directory
    from electra_tf.formats import pretrained
    from electra_tf.formats.hugging_face import DISCRIMINATOR
    from electra_tf.formats.pretrained import Format  # TensorFlow takes seconds to import.

    source = storage.path(values["from"].value)
    target = storage.require_local(storage.utf8_path(values.to), "--to",
                                   "the directory is renamed when it is whole")
    # The networks in this program's names; what their format lacks comes from the flags.
    checkpoint = pretrained.read(
        source, vocab_file=storage.path(values.vocab_file) if values.vocab_file else None,
        normalization=None if values.lower_case is None else Normalization.of(values.lower_case),
        num_heads=values.num_heads, text_columns=values.text_columns)
    # The other format and a model card, which shows how to load what transformers reads.
    with atomic_directory(target) as unfinished:
        pretrained.write(checkpoint, unfinished, Format(values.to_format))
        loadable = target if checkpoint.task is not None else target / DISCRIMINATOR
        card.write(unfinished, checkpoint, source, title=str(target), transformers=(
            str(loadable) if values.to_format == Format.HUGGING_FACE else ""))
    count = sum(value.size for value in checkpoint.weights.values())
    print(f"{len(checkpoint.weights)} weights, {count:,} parameters: "
          f"{checkpoint.source} -> {target}")


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_string("from", None, "Directory with the networks, or prefix of a checkpoint.",
                        required=True)
    flags.DEFINE_string("to", None, "Directory to write, which must not exist.", required=True)
    flags.DEFINE_enum("to_format", None, ["run", "google", "hugging_face"],
                      "Format to write.", required=True)
    flags.DEFINE_string("vocab_file", None, "Vocabulary file. Default: vocab.txt beside --from.")
    flags.DEFINE_bool("lower_case", None, "The vocabulary is uncased. Default: the value "
                      "in vocab.txt.manifest.json beside it, otherwise true.")
    flags.DEFINE_integer(
        "num_heads", None, "Number of attention heads. Default: the number in bert_config.json "
        "beside the checkpoint, otherwise as in the published model of this size.", lower_bound=1)
    flags.DEFINE_list("text_columns", [], "Columns of the one or two texts that a fine-tuned model "
                      "reads, such as text,text_pair. Default: of GLUE's task in config.json, "
                      "text_1,text_2 for a CrossEncoder, otherwise text.")


run = functools.partial(command_line.run, main, define, summary=__doc__, groups={
    "Networks": ["from", "to", "to_format", "text_columns"],
    "For checkpoints of Google": ["vocab_file", "lower_case", "num_heads"]})

if __name__ == "__main__":
    run()
