"""Reads and writes what sentence-transformers adds to Hugging Face's directories: modules.json."""

from typing import Annotated, Any

from annotated_types import Interval

from electra_tf.config.finetuning import POOLING_MODES
from electra_tf.core import strict_json
from electra_tf.core.atomic_file import make_directory, write_json
from electra_tf.core.errors import UserError, shown
from electra_tf.core.storage import Path
from electra_tf.formats.pretrained import Pooling

MODULES_FILE, _MODEL_FILE = "modules.json", "config_sentence_transformers.json"
_ENCODER_FILE, _POOLING_FILE = "sentence_bert_config.json", "config.json"
FILES = MODULES_FILE, _MODEL_FILE, _ENCODER_FILE, f"1_Pooling/{_POOLING_FILE}"
"""All files that `read` may read in a directory of the Hub."""
_ENDINGS = {"cls": "_token", "lasttoken": "", "mean_sqrt_len_tokens": ""}
_MODE_SWITCHES = {f"pooling_mode_{mode}{_ENDINGS.get(mode, '_tokens')}": mode
                  for mode in POOLING_MODES}


class _Module(strict_json.OpenObject):
    path: str
    type: str


class _EmbeddingSettings(strict_json.OpenObject):
    """The entries of `_MODEL_FILE` and `_ENCODER_FILE` that change vectors."""

    default_prompt_name: str | None = None
    max_seq_length: Annotated[int, Interval(ge=3)] | None = None
    do_lower_case: bool = False


def read(path: Path) -> tuple[Path, Pooling, bool]:
    """Returns the directory of the encoder, the pooling, and True if texts are lower-cased first.

    Raises `UserError` for modules and settings that change vectors in another way.
    """
    # The modules: an encoder, a pooling and perhaps a normalization.
    file = path / MODULES_FILE
    modules = strict_json.read(file, list[_Module]) or [_Module(path="", type="none")]
    encoder, *names = (module.type.rpartition(".")[2] for module in modules)
    directory = path / modules[0].path if modules[0].path else path
    if encoder not in ("Transformer", "BERT") or names not in (
            [], ["Pooling"], ["Pooling", "Normalize"], ["Normalize"]):
        fix = f"remove {MODULES_FILE}" if directory == path else f"name {directory}"
        raise UserError(f"{file}: the modules are {', '.join([encoder, *names])}; only "
                        "Transformer, Pooling and Normalize, in this order, are supported. To use "
                        f"the encoder alone, {fix}.")
    prompt = _read_settings(path / _MODEL_FILE).default_prompt_name
    if prompt is not None:
        raise UserError(f"{path / _MODEL_FILE}: default_prompt_name is {shown(prompt)}, and embed "
                        "adds no prompt; write null there and the prompt before texts.")

    # The modes of pooling, in the order in which their vectors are concatenated.
    settings, modes = _read_settings(directory / _ENCODER_FILE), Pooling.modes
    if "Pooling" in names:
        file = path / modules[1].path / _POOLING_FILE
        entries = {"pooling_mode_mean_tokens": True} | strict_json.read(file, dict[str, Any])
        modes = entries.get("pooling_mode")
        if modes is None:  # Older files have a switch for each mode, in any order.
            modes = [_MODE_SWITCHES.get(name, name) if value is True else name
                     for name, value in entries.items()
                     if name.startswith("pooling_mode_") and value is not False]
            modes.sort(key=[*POOLING_MODES, *modes].index)
        modes = [modes] if isinstance(modes, str) else modes
        if not isinstance(modes, list) or not modes or not set(modes) <= set(POOLING_MODES):
            raise UserError(f"{file}: the pooling must be one or more of "
                            f"{', '.join(POOLING_MODES)}. Received: {shown(modes)}")
    return directory, Pooling(modes=tuple(modes), normalize="Normalize" in names,
                              max_length=settings.max_seq_length), settings.do_lower_case


def write(pooling: Pooling, hidden_size: int, directory: Path) -> None:
    """Writes the files for an encoder in `directory` whose pooled vectors are normalized."""
    # A module each for encoder, pooling and normalization, with its settings.
    paths = {"Transformer": "", "Pooling": "1_Pooling", "Normalize": "2_Normalize"}
    write_json(directory / MODULES_FILE, [
        {"idx": index, "name": str(index), "path": path,
         "type": f"sentence_transformers.models.{name}"}
        for index, (name, path) in enumerate(paths.items())])
    for path in filter(None, paths.values()):
        make_directory(directory / path)
    # Switches, which all versions read, or a list, which has an order.
    switches = {switch: mode in pooling.modes for switch, mode in _MODE_SWITCHES.items()}
    is_in_order = [*pooling.modes] == [mode for mode in POOLING_MODES if mode in pooling.modes]
    write_json(directory / paths["Pooling"] / _POOLING_FILE, {
        "word_embedding_dimension": hidden_size,
        **(switches if is_in_order else {"pooling_mode": pooling.modes})})
    write_json(directory / _ENCODER_FILE, {
        "max_seq_length": pooling.max_length, "do_lower_case": False})
    write_json(directory / _MODEL_FILE, {"prompts": {}, "default_prompt_name": None,
                                         "similarity_fn_name": "cosine"})


def _read_settings(path: Path) -> _EmbeddingSettings:
    return (strict_json.read(path, _EmbeddingSettings) if path.exists()
            else _EmbeddingSettings())
