"""Downloads models of the Hugging Face Hub by "owner/name" or "hf://owner/name@revision".

huggingface_hub downloads and caches them; HF_HOME, HF_ENDPOINT, HF_HUB_OFFLINE and HF_TOKEN are its
own settings.
"""

import pathlib
import re
from collections.abc import Sequence

from electra_tf.platform.errors import UserError
from electra_tf.platform.hub import one_line_errors, require_hash
from electra_tf.platform.storage import Path

_PUBLISHED = [f"google/electra-{size}-{network}" for size in ("small", "base", "large")
              for network in ("discriminator", "generator")]
_NAME = re.compile(r"(hf://)?([\w-][\w.-]*/[\w-][\w.-]*)(?:@([^@]+))?")


def is_name(path: Path) -> bool:
    """Returns True for a model's name; an existing local path of this name comes first."""
    match = _NAME.fullmatch(str(path))
    if match is None or match[1]:
        return str(path).startswith("hf://")
    # A checkpoint's prefix is no file, but its files begin with it.
    return match[3] is None and not any(path.parent.glob(f"{path.name}*"))


def parse(path: Path) -> tuple[str, str | None]:
    """Returns the name and the revision of a model; `UserError` for another form of name."""
    match = _NAME.fullmatch(str(path))
    if match is None:
        raise UserError(f"{path} is no name of a model: hf://OWNER/NAME or hf://OWNER/NAME@REVISION.")
    return match[2], match[3]


def download(model: str, revision: str | None, files: Sequence[str]) -> pathlib.Path:
    """Returns the local directory of a model, with those of some files that the model has.

    Refuses a model or revision that does not exist, and files with another hash than the Hub's.
    Reports access and connection errors.
    """
    with one_line_errors(model, revision, known=_PUBLISHED):
        from huggingface_hub import snapshot_download

        directory = pathlib.Path(
            snapshot_download(model, revision=revision, allow_patterns=files))
    for path in filter(pathlib.Path.exists, map(directory.joinpath, files)):
        require_hash(path)
    return directory
