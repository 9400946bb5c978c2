r"""Exports the discriminator of a pre-training run as a SavedModel that takes strings.

    python -m electra_tf.apps.tools.export_model --model_dir=runs/small --export_dir=served/small

Writes served/small/1 for TensorFlow Serving: its signatures detect replaced words and embed texts.
run_finetuning.py --mode=export does the same for a fine-tuned model. See docs/how_to/serving.md.
"""

from absl import flags

from electra_tf.config.finetuning_flags import ExportFlags
from electra_tf.platform import command_line, storage
from electra_tf.platform.errors import UserError
from electra_tf.platform.setting_text import define_flags


def main() -> None:
    """Reads the networks and writes the SavedModel."""
    values = flags.FLAGS
    if not values.export_dir:
        raise UserError(f"--export_dir is needed: {values['export_dir'].help}")
    from electra_tf.checkpoints import formats  # TensorFlow takes seconds to import.
    from electra_tf.export import card, saved_model, servable

    target = saved_model.Target.of(
        values.export_dir, values.export_version, values.serving_precision)
    source = storage.path(values.model_dir)
    networks = formats.read(source)
    saved_model.export(
        servable.of_discriminator(networks), target, lambda directory: card.write(
            directory, networks, source, title=str(target.directory), saved_model=True))


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_string("model_dir", None, "Directory of a pre-training run, or another checkpoint "
                        "with a discriminator.", required=True)
    define_flags(ExportFlags)


def run() -> None:
    """Runs the command line."""
    define()
    command_line.run(main, summary=__doc__, groups={
        "Model": ["model_dir"], "Export": list(ExportFlags.__dataclass_fields__)})


if __name__ == "__main__":
    run()
