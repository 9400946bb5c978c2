"""Flags of exporting, which both commands have."""

from absl import flags

NAMES = ("export_dir", "export_version", "serving_precision")


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_string(
        "export_dir", None, "Where to write the model for TensorFlow Serving, in a directory named "
        "after its version; when training, at the end.")
    flags.DEFINE_string(
        "export_version", "1", "Of the exported model, a positive integer; servers take the "
        "highest.")
    flags.DEFINE_string(
        "serving_precision", "float32", "float32, or bfloat16: half the size, and faster on CPUs "
        "that multiply it.")
