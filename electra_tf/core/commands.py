"""The commands of the project: subcommands of `electra`, modules and scripts of a clone."""

from typing import NamedTuple


class Command(NamedTuple):
    """A command; `MODULE.run` is its main function, and `python -m MODULE` starts it too."""

    module: str
    purpose: str  # One line of `electra --help`.
    script: str = ""  # Python file at the top level of a clone.


COMMANDS = {
    "vocab": Command("data_prep.build_vocab", "learns a WordPiece vocabulary from text"),
    "records": Command("data_prep.build_pretraining_data", "makes pre-training records from text"),
    "inspect": Command("electra_tf.apps.tools.inspect_records", "reports what records contain"),
    "plan": Command("electra_tf.apps.planning.plan", "proposes a model size for a time budget"),
    "cost": Command("electra_tf.apps.planning.estimate_cost", "estimates FLOPs, time and dollars"),
    "pretrain": Command("electra_tf.pretraining.command", "pre-trains, evaluates, shows samples",
                        "run_pretraining.py"),
    "curves": Command("electra_tf.apps.tools.plot_curves", "draws the curves of runs"),
    "score": Command("electra_tf.apps.tools.score_text", "scores sentences, and BLiMP"),
    "demo": Command("electra_tf.apps.demo.demo", "shows both networks on a sentence in a browser"),
    "finetune": Command("electra_tf.finetuning.command", "fine-tunes, evaluates, predicts",
                        "run_finetuning.py"),
    "convert": Command("electra_tf.apps.tools.convert_checkpoint",
                       "converts between checkpoint formats"),
    "push": Command("electra_tf.apps.tools.push", "publishes a model on the Hugging Face Hub"),
    "export": Command("electra_tf.apps.tools.export_model",
                      "exports a fine-tuned model or a pre-trained discriminator"),
    "export-tflite": Command("electra_tf.apps.tools.export_tflite", "exports for TensorFlow Lite"),
    "export-onnx": Command("electra_tf.apps.tools.export_onnx", "exports for ONNX Runtime"),
    "serve": Command("electra_tf.apps.serving.serve", "serves SavedModels (development server)"),
}
"""Subcommand -> its command, in the order of a project."""
