"""Checks files in the cache of huggingface_hub."""

import hashlib
import pathlib

from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import file_sha256


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
