"""Downloads models of the Hugging Face Hub, explains its errors and checks the cached files.

Models are named "owner/name" or "hf://owner/name@revision". huggingface_hub downloads and caches
them; HF_HOME, HF_ENDPOINT, HF_HUB_OFFLINE and HF_TOKEN are its own settings.
"""

import contextlib
import hashlib
import itertools
import pathlib
import re
from collections.abc import Iterator, Sequence

from electra_tf.core.command_line import pip_install, shell_command
from electra_tf.core.errors import UserError, shown
from electra_tf.core.settings import suggestion
from electra_tf.core.storage import Path, file_sha256

MODEL, DATA_SET = "model", "data set"
"""Kinds of repositories."""
_PUBLISHED = [f"google/electra-{size}-{network}" for size in ("small", "base", "large")
              for network in ("discriminator", "generator")]
MODEL_NAME = re.compile(r"(hf://)?([\w-][\w.-]*/[\w-][\w.-]*)(?:@([^@]+))?")
"""Groups: the scheme, OWNER/NAME and the revision."""


class MissingRepository(UserError):
    """A repository or revision that is not on the Hub, or not in the cache while offline."""


def is_model_name(path: Path) -> bool:
    """Returns True for a model's name; an existing local path of this name comes first."""
    match = MODEL_NAME.fullmatch(str(path))
    if match is None or match[1]:
        return str(path).startswith("hf://")
    # A checkpoint's prefix is no file, but its files begin with it.
    return match[3] is None and not any(path.parent.glob(f"{path.name}*"))


def parse_model_name(path: Path) -> tuple[str, str | None]:
    """Returns the name and the revision of a model; `UserError` for another form of name."""
    match = MODEL_NAME.fullmatch(str(path))
    if match is None:
        raise UserError(f"{path} is not hf://OWNER/NAME or hf://OWNER/NAME@REVISION.")
    return match[2], match[3]


def download_model(model: str, revision: str | None, files: Sequence[str]) -> pathlib.Path:
    """Returns the local directory of a model, with those of some files that the model has.

    `files` are names or patterns. Raises as `one_line_errors` and `require_hash` do.
    """
    with one_line_errors(model, revision):
        from huggingface_hub import snapshot_download

        directory = pathlib.Path(snapshot_download(model, revision=revision, allow_patterns=files))
    for path in itertools.chain.from_iterable(map(directory.glob, files)):
        require_hash(path)
    return directory


@contextlib.contextmanager
def one_line_errors(name: str, revision: str | None = None, *, kind: str = MODEL) -> Iterator[None]:
    """Turns huggingface_hub's errors about a repository into `UserError`."""
    local = "not a local path and " if kind == MODEL else ""
    try:
        from huggingface_hub import constants, errors
    except ModuleNotFoundError as error:
        raise UserError(f"{name} is {local}not readable from the Hugging Face Hub without "
                        f"huggingface_hub: {pip_install('hub')}") from error
    address = f"{constants.ENDPOINT}/{'datasets/' if kind == DATA_SET else ''}{name}"
    try:
        yield
    except errors.HFValidationError as error:
        raise UserError(f"{name} is not a valid name of a {kind}: {error}") from error
    except errors.RevisionNotFoundError as error:
        raise MissingRepository(f"{name} has no revision {shown(revision)}; {address}/commits "
                                "lists them.") from error
    # errors.HTTPError is the HTTP client's own, which is another package in other versions.
    except (errors.HTTPError, OSError) as error:
        # GatedRepoError is a kind of RepositoryNotFoundError, but the repository exists.
        gated = isinstance(error, errors.GatedRepoError)
        if isinstance(error, errors.RepositoryNotFoundError) and not gated:
            raise MissingRepository(
                f"{name} is {local}not a public {kind} at {constants.ENDPOINT}."
                f"{suggestion(name, _PUBLISHED)} For a private {kind}, log in first: hf auth login."
                ) from error
        # No permission: HTTP's 401 or 403, of the error or of its cause.
        statuses = {getattr(getattr(cause, "response", None), "status_code", None)
                    for cause in (error, error.__cause__)}
        if gated or statuses & {401, 403}:
            raise UserError(f"{name} is gated or needs another token: accept its terms at "
                            f"{address}, then log in with hf auth login or set HF_TOKEN."
                            ) from error
        # No connection, by choice or not; otherwise the transfer began and was cut.
        problem = f"{name} is {local}incomplete in the cache {constants.HF_HUB_CACHE}"
        if constants.HF_HUB_OFFLINE:
            raise MissingRepository(f"{problem}, and HF_HUB_OFFLINE is set; unset it to download "
                                    f"the {kind}.") from error
        if isinstance(error, errors.LocalEntryNotFoundError):
            raise UserError(f"{problem}, and {constants.ENDPOINT} can't be reached: "
                            f"{error.__cause__ or error}") from error
        raise UserError(f"the transfer of {name} was interrupted; repeat the command to resume it: "
                        f"{error}") from error


def require_hash(path: pathlib.Path) -> None:
    """Raises `UserError` if a cached file has another hash than the Hub's file.

    The cache names files by it: SHA-256, or Git's SHA-1 for files that Git holds itself. Files with
    other names, of servers that give no hash, are not checked.
    """
    blob = path.resolve()
    if len(blob.name) == 64:
        digest = file_sha256(blob)
    elif len(blob.name) == 40:
        content = blob.read_bytes()
        digest = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    else:
        return
    if digest != blob.name:
        raise UserError(f"{path} isn't the Hub's file: its hash is {digest[:12]}..., the Hub's "
                        f"{blob.name[:12]}.... Remove it and repeat the command: "
                        + shell_command(["rm", str(blob)]))
