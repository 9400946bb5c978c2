"""Reads a text column of data sets by name: of the Hugging Face Hub, and of TensorFlow Datasets.

The Hub converts most data sets to Parquet, in the revision refs/convert/parquet. Other data sets
must have Parquet files named `[config/]split-00000-of-00001.parquet`. huggingface_hub downloads a
file when it is first read, and caches it; HF_HOME, HF_ENDPOINT, HF_HUB_OFFLINE and HF_TOKEN
configure it. Every file is read at the commit that the revision had at the beginning.
"""
# ruff: noqa: D102 - `Source` describes the methods of all sources, and pathlib those of files.

import dataclasses
import functools
import hashlib
import pathlib
import re
import types
import typing
from collections.abc import Iterator

from data_prep.documents import DocumentPart, Parser, decoded, parse_plain_text, stripped
from data_prep.sources.fields import read_rows
from data_prep.sources.files import FileSource, damaged_stretch, digest_of
from data_prep.sources.plain_text import parts_of
from data_prep.sources.source import Source, SourceOptions
from electra_tf.core.errors import UserError, one_line, shown
from electra_tf.core.hub import DATA_SET, one_line_errors, require_hash
from electra_tf.core.settings import suggestion

_NAME = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+)(@(?P<revision>[^:]+))?"
                   r"(:(?P<first>[^:]+))?(:(?P<second>[^:]+))?")
_CONVERTED = "refs/convert/parquet"
_FILE = re.compile(r"((?P<config>.+)/)?(?P<split>[^/-]+(-[^/\d][^/-]*)*)"
                   r"(/\d+|-\d+-of-\d+[^/]*)\.parquet")
_DEFAULT = "default"  # Name of a data set's only configuration.


@dataclasses.dataclass(frozen=True)
class HubFile:
    """A file of a data set, with the methods of a path that `FileSource` calls."""

    repository: str
    revision: str  # A commit.
    name: str
    size: int

    suffix = ".parquet"

    def stat(self) -> types.SimpleNamespace:
        return types.SimpleNamespace(st_size=self.size)

    def resolve(self) -> "HubFile":
        return self

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

    def __post_init__(self):
        super().__post_init__()
        self.revisions = (f"{self.paths[0].repository}@{self.paths[0].revision}",)

    def sha256(self) -> str:
        # The commit and the names, which need no download.
        return hashlib.sha256("\n".join([
            self.name, *self.revisions, *(file.name for file in self.paths)]).encode()
            ).hexdigest()


def hub_data_set(name: str, column: str) -> HubSource:
    """Returns the source of OWNER/DATASET[@REVISION][:CONFIG][:SPLIT]; `UserError` if unknown.

    Without a revision, it reads the Hub's conversion, or main if there is none.
    """
    # Resolve the revision to a commit, so that a changed data set does not mix files.
    match = _NAME.fullmatch(name)
    if match is None:
        raise UserError(f"--input=hf:{name} must be hf:OWNER/DATASET[@REVISION][:CONFIG][:SPLIT].")
    repository, config, split = match["repository"], match["first"], match["second"]
    with one_line_errors(repository, match["revision"], kind=DATA_SET):
        import huggingface_hub

        info = functools.partial(huggingface_hub.HfApi().dataset_info, repository,
                                 files_metadata=True)
        try:
            commit = info(revision=match["revision"] or _CONVERTED)
        except huggingface_hub.errors.RevisionNotFoundError:
            if match["revision"]:
                raise
            commit = info()
    # Group the Parquet files by configuration and split.
    configs: dict[str, dict[str, list[HubFile]]] = {}
    for file in sorted(commit.siblings, key=lambda file: file.rfilename):
        name = file.rfilename
        parts = pathlib.PurePosixPath(name).parts
        if not parts or parts[0] == "/" or ".." in parts or "\\" in name:
            raise UserError(f"{repository} lists the file {shown(name)}, which is outside its "
                            "directory; name another data set.")
        # The Hub converts to config/split/0000.parquet; others have
        # data/split-00000-of-00001.parquet.
        if path := _FILE.fullmatch(name):
            file_config = path["config"] if path["config"] not in (None, "data") else _DEFAULT
            configs.setdefault(file_config, {}).setdefault(path["split"], []).append(
                HubFile(repository, commit.sha, name, file.size or 0))
    if not configs:
        raise UserError(f"{repository} has no Parquet files of splits; download its files, and "
                        "name them with another source.")
    # A single name after the data set is a configuration or a split.
    if not split and config not in configs and any(config in splits for splits in configs.values()):
        config, split = None, config
    config = config or (min(configs) if len(configs) == 1 else _DEFAULT)
    splits = _choose(configs, config, f"{repository} has no configuration")
    split = split or (min(splits) if len(splits) == 1 else "train")
    files = _choose(splits, split, f"{repository}:{config} has no split")
    return HubSource(tuple(files), f"parquet#{column}", functools.partial(read_rows, column),
                     parse_plain_text, None)


def _choose(known: dict[str, typing.Any], name: str, problem: str) -> typing.Any:
    if name not in known:
        raise UserError(f"{problem} {shown(name)}; name one after a colon: "
                        f"{', '.join(sorted(known))}.{suggestion(name, known)}")
    return known[name]


@dataclasses.dataclass
class TfdsSource(Source):
    """A text feature of a split of TensorFlow Datasets, its rows in the order of its files.

    The data set is prepared if necessary. Raises `UserError` for unknown names.
    """

    name: str
    feature: str
    options: SourceOptions

    def __post_init__(self):
        import tensorflow_datasets as tfds  # Its import takes seconds.

        # Prepare the data set.
        directory = self.options.tfds_data_dir
        try:
            builder = tfds.builder(self.name, data_dir=directory or None)
            builder.download_and_prepare()
        except (tfds.core.DatasetNotFoundError, tfds.download.DownloadError, OSError, ValueError
                ) as error:
            raise UserError(
                f"TensorFlow Datasets has no {shown(self.name)} in {directory or 'its directory'} "
                f"and can't download it ({one_line(str(error), 150)}); name another data set, or "
                "its directory with --tfds_data_dir.") from error
        try:
            split = builder.info.splits[self.options.tfds_split]
            self._files = tuple(pathlib.Path(file.filename) for file in split.file_instructions)
        except (KeyError, ValueError, AssertionError) as error:
            raise UserError(f"{self.name} has no split {shown(self.options.tfds_split)}; it has "
                            f"{', '.join(builder.info.splits)} (--tfds_split).") from error
        # Check the feature, and choose the parser.
        features = builder.info.features
        texts = sorted(
            name for name in features if isinstance(features[name], tfds.features.Text))
        if self.feature not in texts:
            raise UserError(f"{self.name} has no text feature {shown(self.feature)}; it has "
                            f"{', '.join(texts)}. Name the feature with the text after the data "
                            "set: #FEATURE.")
        self.parse: Parser = parse_plain_text
        if self.name.partition("/")[0].partition(":")[0] == "wiki40b":
            self.parse = functools.partial(parse_wiki40b, self.options.wiki_headings)
        self._rows, self._rows_read = split.num_examples, 0
        self.size = sum(path.stat().st_size for path in self._files)

    def documents(self) -> Iterator[DocumentPart]:
        import tensorflow as tf
        import tensorflow_datasets as tfds

        # Rows in the order of the files, read one file after the other.
        self._rows_read = 0
        builder = tfds.builder(self.name, data_dir=self.options.tfds_data_dir or None)
        path = f"tfds:{self.name}"
        try:
            rows = builder.as_dataset(
                split=self.options.tfds_split, shuffle_files=False,
                read_config=tfds.ReadConfig(interleave_cycle_length=1, try_autocache=False))
            for row in tfds.as_numpy(rows.map(lambda row: row[self.feature])):
                yield from parts_of(row, f"{path}, row {self._rows_read}")
                self._rows_read += 1
        except tf.errors.OpError as error:
            yield damaged_stretch(path, (
                f"{path} in {builder.data_dir} is corrupt or cut short after row "
                f"{self._rows_read} ({one_line(error.message or '', 150)})"))

    def position(self) -> int:
        return self.size * self._rows_read // max(1, self._rows)

    def sha256(self) -> str:
        return digest_of(f"tfds {self.options.tfds_split}#{self.feature} "
                         f"headings={self.options.wiki_headings}", self._files)


def parse_wiki40b(headings: bool, part: DocumentPart) -> Iterator[str]:
    """Yields the lines of an article of Wiki-40B, with title and headings if `headings` is True."""
    # Marks stand alone in lines, and tell what the following lines are.
    paragraph = kind = "_START_PARAGRAPH_"
    for line in stripped(decoded(part)):
        if line in ("_START_ARTICLE_", "_START_SECTION_", paragraph):
            kind = line
        elif kind == paragraph:
            yield from filter(None, map(str.strip, line.split("_NEWLINE_")))
        elif headings:
            yield line
