"""The values of --vocab_file and --normalization, flags of several commands."""

from absl import flags

from electra_tf.platform import storage
from electra_tf.platform.errors import UserError, shown
from electra_tf.text.tokenization import MODES, Normalization, TextSettings

AUTO = "auto"


def text_settings(values: flags.FlagValues) -> TextSettings:
    """Returns the values of --vocab_file and --normalization; raises as `TextSettings.load`."""
    return TextSettings.load(storage.path(values.vocab_file), asked_for(values))


def asked_for(values: flags.FlagValues) -> Normalization | None:
    """Returns the normalization of --normalization, None for auto, or raises `UserError`."""
    mode = values.normalization
    if mode not in (AUTO, *MODES):
        raise UserError(f"--normalization must be one of {', '.join((AUTO, *MODES))}. "
                        f"Received: {shown(mode)}")
    return MODES.get(mode)
