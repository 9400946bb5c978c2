"""Downloads models of the Hugging Face Hub by "owner/name" or "hf://owner/name@revision".

huggingface_hub downloads and caches them; HF_HOME, HF_ENDPOINT, HF_HUB_OFFLINE and HF_TOKEN are its
own settings.
"""

import contextlib
import difflib
import pathlib
import re
from collections.abc import Iterator

from electra_tf.checkpoints import hugging_face
from electra_tf.checkpoints.run_directory import VOCABULARY_FILE
from electra_tf.platform.command_line import pip_install
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path

_PUBLISHED = [f"google/electra-{size}-{network}" for size in ("small", "base", "large")
              for network in ("discriminator", "generator")]
_NAME = re.compile(r"(hf://)?([\w-][\w.-]*/[\w-][\w.-]*)(?:@([^@]+))?")
_SMALL_FILES = [hugging_face.CONFIG_FILE, hugging_face.TOKENIZER_FILE,
                hugging_face.TOKENIZER_SETTINGS_FILE, VOCABULARY_FILE]


def is_name(path: Path) -> bool:
    """Returns True for a model's name; an existing local path of this name comes first."""
    match = _NAME.fullmatch(str(path))
    if match is None or match[1]:
        return str(path).startswith("hf://")
    # A checkpoint's prefix is no file, but its files begin with it.
    return match[3] is None and not any(path.parent.glob(f"{path.name}*"))


def fetch(path: Path, *, generator: bool) -> tuple[pathlib.Path, pathlib.Path | None]:
    """Returns the local directories of a model and of its generator, if it has its own name.

    Refuses a model or revision that does not exist, and reports access and connection errors.
    """
    match = _NAME.fullmatch(str(path))
    if match is None:
        raise UserError(f"{path} is no name of a model: hf://OWNER/NAME or hf://OWNER/NAME@REVISION.")
    _, model, revision = match.groups()
    directory = _fetch(model, revision, generator_within=generator)
    if not generator or not model.endswith("-discriminator"):
        return directory, None
    try:
        return directory, _fetch(f"{model.removesuffix('discriminator')}generator", revision)
    except _MissingModel:
        return directory, None


class _MissingModel(UserError):
    """A model or revision that is not on the Hub, or not in the cache while offline."""


def _fetch(model: str, revision: str | None, generator_within: bool = False) -> pathlib.Path:
    """Returns the directory of a model with one file of weights; config.json is checked first."""
    places = ("", f"{hugging_face.GENERATOR}/") if generator_within else ("",)
    with one_line_errors(model, revision):
        from huggingface_hub import snapshot_download

        def download(*more: str) -> pathlib.Path:
            return pathlib.Path(snapshot_download(model, revision=revision, allow_patterns=[
                place + name for place in places for name in (*_SMALL_FILES, *more)]))

        directory = download()
        if not (directory / hugging_face.CONFIG_FILE).exists():
            raise UserError(f"{model} holds no config.json; it is no model of transformers.")
        hugging_face.read_config(directory)
        for name in hugging_face.WEIGHTS_FILES:
            if (download(name) / name).exists():
                break
        return directory


@contextlib.contextmanager
def one_line_errors(model: str, revision: str | None) -> Iterator[None]:
    """Turns huggingface_hub's errors into `UserError`."""
    try:
        from huggingface_hub import constants, errors
    except ModuleNotFoundError as error:
        raise UserError(f"{model} is no local path, and models of the Hugging Face Hub need: "
                        f"{pip_install('hub')}") from error
    endpoint = constants.ENDPOINT
    try:
        yield
    except errors.HFValidationError as error:
        raise UserError(f"{model} is no name of a model: {error}") from error
    except errors.RevisionNotFoundError as error:
        raise _MissingModel(f"{model} has no revision {revision!r}; {endpoint}/{model}/commits "
                            "lists them.") from error
    # errors.HTTPError is the HTTP client's own, which is another package in other versions.
    except (errors.HTTPError, OSError) as error:
        gated = isinstance(error, errors.GatedRepoError)
        if isinstance(error, errors.RepositoryNotFoundError) and not gated:
            close = " or ".join(difflib.get_close_matches(model, _PUBLISHED, n=3, cutoff=0.7))
            hint = close and f" Did you mean {close}?"
            raise _MissingModel(
                f"{model} is neither a local path nor a public model at {endpoint}.{hint} For a "
                "private model, log in first: hf auth login.") from error
        if gated or {_status_of(error), _status_of(error.__cause__)} & {401, 403}:
            raise UserError(f"{model} is gated or needs another token: accept its terms at "
                            f"{endpoint}/{model}, then log in with hf auth login or set "
                            "HF_TOKEN.") from error
        if not isinstance(error, errors.LocalEntryNotFoundError):
            raise UserError(f"the transfer of {model} was interrupted; repeat the command to "
                            f"resume it: {error}") from error
        problem = f"{model} is not a local path and not whole in the cache {constants.HF_HUB_CACHE}"
        if constants.HF_HUB_OFFLINE:
            raise _MissingModel(f"{problem}, and HF_HUB_OFFLINE is set; unset it to download the "
                                "model.") from error
        raise UserError(f"{problem}, and {endpoint} can't be reached: "
                        f"{error.__cause__ or error}") from error


def _status_of(error: BaseException | None) -> int | None:
    """Returns the HTTP status of an error; None if it has none."""
    return getattr(getattr(error, "response", None), "status_code", None)
