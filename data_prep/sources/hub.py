"""Reads data sets of the Hugging Face Hub: a text column of their Parquet files.

The Hub converts most data sets to Parquet, in the revision refs/convert/parquet. Other data sets
must have Parquet files named `[config/]split-00000-of-00001.parquet`. huggingface_hub downloads a
file when it is first read, and caches it; HF_HOME, HF_ENDPOINT, HF_HUB_OFFLINE and HF_TOKEN
configure it. Every file is read at the commit that the revision had at the beginning.
"""

import dataclasses
import functools
import hashlib
import pathlib
import re
import types
import typing

from data_prep.documents import parse_plain_text
from data_prep.sources.columns import read_rows
from data_prep.sources.files import FileSource
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.hub import DATA_SET, one_line_errors, require_hash
from electra_tf.platform.settings import suggestion

_NAME = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+)(@(?P<revision>[^:]+))?"
                   r"(:(?P<first>[^:]+))?(:(?P<second>[^:]+))?")
_CONVERTED = "refs/convert/parquet"
_FILE = re.compile(r"((?P<config>.+)/)?(?P<split>[^/-]+(-[^/\d][^/-]*)*)"
                   r"(/\d+|-\d+-of-\d+[^/]*)\.parquet")
_DEFAULT = "default"
"""Name of a data set's only configuration."""


@dataclasses.dataclass(frozen=True)
class HubFile:
    """A file of a data set, with the methods of a path that `FileSource` calls."""

    repository: str
    revision: str
    """A commit."""
    name: str
    size: int

    suffix = ".parquet"

    def stat(self) -> types.SimpleNamespace:
        """Returns the size as `st_size`."""
        return types.SimpleNamespace(st_size=self.size)

    def open(self, mode: str) -> typing.BinaryIO:
        """Opens the file, and downloads it if necessary; `UserError` if that fails."""
        with one_line_errors(self.repository, self.revision, kind=DATA_SET):
            from huggingface_hub import hf_hub_download

            path = hf_hub_download(self.repository, self.name, repo_type="dataset",
                                   revision=self.revision)
        require_hash(pathlib.Path(path))
        return open(path, mode)

    def __str__(self) -> str:
        return f"hf:{self.repository}@{self.revision[:12]}/{self.name}"


class HubSource(FileSource):
    """Files of one commit of a data set."""

    def sha256(self) -> str:
        """Returns a digest of the commit and the files' names, which needs no download."""
        return hashlib.sha256("\n".join([
            self.name, *self.revisions(), *(file.name for file in self.paths)]).encode()
            ).hexdigest()

    def revisions(self) -> tuple[str, ...]:
        """Returns the data set with its commit."""
        return (f"{self.paths[0].repository}@{self.paths[0].revision}",)


def hub_data_set(name: str, column: str) -> HubSource:
    """Returns the source of OWNER/DATASET[@REVISION][:CONFIG][:SPLIT]; `UserError` if unknown."""
    found = _NAME.fullmatch(name)
    if found is None:
        raise UserError(f"--input=hf:{name} must be hf:OWNER/DATASET[@REVISION][:CONFIG][:SPLIT].")
    repository, config, split = found["repository"], found["first"], found["second"]
    configs = _configs(repository, _files(repository, found["revision"]))
    if not split and config not in configs:
        every = {name for splits in configs.values() for name in splits}
        config, split = (None, config) if config in every else (config, None)
    config = config or (min(configs) if len(configs) == 1 else _DEFAULT)
    splits = _choose(configs, config, f"{repository} has no configuration")
    split = split or (min(splits) if len(splits) == 1 else "train")
    files = _choose(splits, split, f"{repository}:{config} has no split")
    return HubSource(tuple(files), f"parquet#{column}", functools.partial(read_rows, column),
                     parse_plain_text, None)


def _files(repository: str, revision: str | None) -> list[HubFile]:
    """Returns all files of a revision, by default of the Hub's conversion, otherwise of main."""
    with one_line_errors(repository, revision, kind=DATA_SET):
        import huggingface_hub

        info = functools.partial(huggingface_hub.HfApi().dataset_info, repository,
                                 files_metadata=True)
        try:
            found = info(revision=revision or _CONVERTED)
        except huggingface_hub.errors.RevisionNotFoundError:
            if revision:
                raise
            found = info()
    files = [HubFile(repository, found.sha, file.rfilename, file.size or 0)
             for file in sorted(found.siblings, key=lambda file: file.rfilename)]
    for file in files:
        parts = pathlib.PurePosixPath(file.name).parts
        if not parts or parts[0] == "/" or ".." in parts or "\\" in file.name:
            raise UserError(f"{repository} lists the file {shown(file.name)}, which is outside its "
                            "directory; name another data set.")
    return files


def _configs(repository: str, files: list[HubFile]) -> dict[str, dict[str, list[HubFile]]]:
    """Returns configuration -> split -> its Parquet files."""
    configs: dict[str, dict[str, list[HubFile]]] = {}
    for file in files:
        if match := _FILE.fullmatch(file.name):
            config = match["config"] if match["config"] not in (None, "data") else _DEFAULT
            configs.setdefault(config, {}).setdefault(match["split"], []).append(file)
    if not configs:
        raise UserError(f"{repository} has no Parquet files of splits; download its files, and "
                        "name them with another source.")
    return configs


def _choose(known: dict[str, typing.Any], name: str, problem: str) -> typing.Any:
    if name not in known:
        raise UserError(f"{problem} {shown(name)}; name one after a colon: "
                        f"{', '.join(sorted(known))}.{suggestion(name, known)}")
    return known[name]
