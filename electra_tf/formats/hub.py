"""Downloads models of the Hugging Face Hub by "owner/name" or "hf://owner/name@revision".

huggingface_hub downloads and caches them; HF_HOME, HF_ENDPOINT, HF_HUB_OFFLINE and HF_TOKEN are its
own settings.
"""

import contextlib
import difflib
import pathlib
import re
from collections.abc import Iterator, Sequence

from electra_tf.platform.command_line import pip_install
from electra_tf.platform.errors import UserError
from electra_tf.platform.hub_cache import require_hash
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


class MissingModel(UserError):
    """A model or revision that is not on the Hub, or not in the cache while offline."""


def download(model: str, revision: str | None, files: Sequence[str]) -> pathlib.Path:
    """Returns the local directory of a model, with those of some files that the model has.

    Refuses a model or revision that does not exist, and files with another hash than the Hub's.
    Reports access and connection errors.
    """
    with one_line_errors(model, revision):
        from huggingface_hub import snapshot_download

        directory = pathlib.Path(
            snapshot_download(model, revision=revision, allow_patterns=files))
    for path in filter(pathlib.Path.exists, map(directory.joinpath, files)):
        require_hash(path)
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
        raise MissingModel(f"{model} has no revision {revision!r}; {endpoint}/{model}/commits "
                            "lists them.") from error
    # errors.HTTPError is the HTTP client's own, which is another package in other versions.
    except (errors.HTTPError, OSError) as error:
        gated = isinstance(error, errors.GatedRepoError)
        if isinstance(error, errors.RepositoryNotFoundError) and not gated:
            close = " or ".join(difflib.get_close_matches(model, _PUBLISHED, n=3, cutoff=0.7))
            hint = close and f" Did you mean {close}?"
            raise MissingModel(
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
            raise MissingModel(f"{problem}, and HF_HUB_OFFLINE is set; unset it to download the "
                                "model.") from error
        raise UserError(f"{problem}, and {endpoint} can't be reached: "
                        f"{error.__cause__ or error}") from error


def _status_of(error: BaseException | None) -> int | None:
    """Returns the HTTP status of an error; None if it has none."""
    return getattr(getattr(error, "response", None), "status_code", None)
