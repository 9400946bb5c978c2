"""Explains errors of huggingface_hub and checks the files in its cache."""

import contextlib
import hashlib
import pathlib
from collections.abc import Iterator, Sequence

from electra_tf.platform.command_line import pip_install
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.settings import suggestion
from electra_tf.platform.storage import file_sha256

MODEL, DATA_SET = "model", "data set"
"""Kinds of repositories."""


class MissingRepository(UserError):
    """A repository or revision that is not on the Hub, or not in the cache while offline."""


@contextlib.contextmanager
def one_line_errors(name: str, revision: str | None = None, *, kind: str = MODEL,
                    known: Sequence[str] = ()) -> Iterator[None]:
    """Turns huggingface_hub's errors about a repository into `UserError`.

    `known` are repositories to suggest for a misspelt name.
    """
    local = "not a local path and " if kind == MODEL else ""
    try:
        from huggingface_hub import constants, errors
    except ModuleNotFoundError as error:
        raise UserError(f"{name} is {local}not readable from the Hugging Face Hub without: "
                        f"{pip_install('hub')}") from error
    address = f"{constants.ENDPOINT}/{'datasets/' if kind == DATA_SET else ''}{name}"
    try:
        yield
    except errors.HFValidationError as error:
        raise UserError(f"{name} is no name of a {kind}: {error}") from error
    except errors.RevisionNotFoundError as error:
        raise MissingRepository(f"{name} has no revision {shown(revision)}; {address}/commits "
                                "lists them.") from error
    # errors.HTTPError is the HTTP client's own, which is another package in other versions.
    except (errors.HTTPError, OSError) as error:
        gated = isinstance(error, errors.GatedRepoError)
        if isinstance(error, errors.RepositoryNotFoundError) and not gated:
            raise MissingRepository(
                f"{name} is {local}not a public {kind} at {constants.ENDPOINT}."
                f"{suggestion(name, known)} For a private {kind}, log in first: hf auth login."
                ) from error
        statuses = {getattr(getattr(cause, "response", None), "status_code", None)
                    for cause in (error, error.__cause__)}
        if gated or statuses & {401, 403}:
            raise UserError(f"{name} is gated or needs another token: accept its terms at "
                            f"{address}, then log in with hf auth login or set HF_TOKEN."
                            ) from error
        problem = f"{name} is {local}not whole in the cache {constants.HF_HUB_CACHE}"
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
                        f"{blob.name[:12]}.... Remove it and repeat the command: rm {blob}")
