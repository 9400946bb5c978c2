"""Writes and checks the checksums of an exported directory, which detect later damage."""

import pathlib

from electra_tf.core import strict_json
from electra_tf.core.atomic_file import make_directory, write_json
from electra_tf.core.errors import UserError
from electra_tf.core.storage import file_sha256

CHECKSUMS = "assets.extra/sha256.json"
"""JSON file of a SavedModel, path -> SHA-256; loaders ignore this file of `assets.extra`."""


def write_checksums(directory: pathlib.Path) -> None:
    """Writes the checksums of all files in a directory."""
    make_directory((directory / CHECKSUMS).parent)
    write_json(directory / CHECKSUMS, {
        path.relative_to(directory).as_posix(): file_sha256(path)
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path != directory / CHECKSUMS})


def require_intact(directory: pathlib.Path, *, needed: bool = False) -> None:
    """Raises `UserError` for a damaged file, and if checksums are `needed` and missing."""
    if not (directory / CHECKSUMS).exists():
        if needed:
            raise UserError(f"{directory} holds no {CHECKSUMS}; copy the whole export, or export "
                            "it again.")
        return
    checksums = strict_json.read(directory / CHECKSUMS, dict[str, str])
    for name, expected in checksums.items():
        path = directory / name
        if not path.is_file() or file_sha256(path) != expected:
            fault = "has another checksum" if path.is_file() else "is missing"
            raise UserError(f"{directory} is damaged: {name} {fault}; export it again, or remove "
                            "this version.")
