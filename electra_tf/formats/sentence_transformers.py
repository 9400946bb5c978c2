"""Reads what sentence-transformers adds to Hugging Face's directories: modules.json and others."""

import dataclasses
from typing import Annotated, Any

from annotated_types import Interval

from electra_tf.formats.pretrained import POOLING_MODES as MODES
from electra_tf.formats.pretrained import Pooling
from electra_tf.platform import strict_json
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path

MODULES_FILE, _MODEL_FILE = "modules.json", "config_sentence_transformers.json"
_ENCODER_FILE, _POOLING_FILE = "sentence_bert_config.json", "config.json"
FILES = MODULES_FILE, _MODEL_FILE, _ENCODER_FILE, f"1_Pooling/{_POOLING_FILE}"
"""All files that `read` may read in a directory of the Hub."""
_KEYS = {f"pooling_mode_{mode}{end}": mode for end in ("", "_tokens", "_token") for mode in MODES}
_ENCODERS, _POOLING, _NORMALIZE = ("Transformer", "BERT"), "Pooling", "Normalize"


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Module:
    __pydantic_config__ = strict_json.OPEN

    path: str
    type: str

    @property
    def name(self) -> str:
        return self.type.rpartition(".")[2]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Settings:
    """The entries of `_MODEL_FILE` and `_ENCODER_FILE` that change vectors."""

    __pydantic_config__ = strict_json.OPEN

    default_prompt_name: str | None = None
    max_seq_length: Annotated[int, Interval(ge=3)] | None = None
    do_lower_case: bool = False


def read(path: Path) -> tuple[Path, Pooling, bool]:
    """Returns the directory of the encoder, the pooling, and True if texts are lower-cased first.

    Raises `UserError` for modules and settings that change vectors in another way.
    """
    file = path / MODULES_FILE
    encoder, *others = (strict_json.read(file, list[_Module])
                        or [_Module(path="", type="none")])
    directory = path / encoder.path if encoder.path else path
    alone = f"name {directory}" if encoder.path else f"remove {MODULES_FILE}"
    names = [module.name for module in others]
    if encoder.name not in _ENCODERS or names not in (
            [], [_POOLING], [_POOLING, _NORMALIZE], [_NORMALIZE]):
        raise UserError(f"{file}: the modules are {', '.join([encoder.name, *names])}; only "
                        "Transformer, Pooling and Normalize, in this order, are computed here. To "
                        f"use the encoder alone, {alone}.")
    prompt = _read_settings(path / _MODEL_FILE).default_prompt_name
    if prompt is not None:
        raise UserError(f"{path / _MODEL_FILE}: default_prompt_name is {shown(prompt)}, and embed "
                        "adds no prompt; write null there and the prompt before texts.")
    settings = _read_settings(directory / _ENCODER_FILE)
    modes = _modes(path / others[0].path / _POOLING_FILE) if _POOLING in names else ("mean",)
    return directory, Pooling(modes=modes, normalize=_NORMALIZE in names,
                              max_length=settings.max_seq_length), settings.do_lower_case


def _read_settings(path: Path) -> _Settings:
    return strict_json.read(path, _Settings) if path.exists() else _Settings()


def _modes(path: Path) -> tuple[str, ...]:
    entries = strict_json.read(path, dict[str, Any])
    modes = entries.get("pooling_mode")
    if modes is None:
        switches = {"pooling_mode_mean_tokens": True} | entries
        modes = [_KEYS.get(key, key) if value is True else key for key, value in switches.items()
                 if key.startswith("pooling_mode_") and value is not False]
    modes = [modes] if isinstance(modes, str) else modes
    if not isinstance(modes, list) or not modes or not set(modes) <= set(MODES):
        raise UserError(f"{path}: the pooling must be one or more of {', '.join(MODES)}. Received: "
                        f"{shown(modes)}")
    return tuple(mode for mode in MODES if mode in modes)
