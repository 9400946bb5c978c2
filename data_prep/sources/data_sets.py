"""Reads a text feature of TensorFlow Datasets: a row is a document."""

import dataclasses
import functools
import hashlib
import pathlib
from collections.abc import Iterator

from data_prep.documents import DocumentPart, Parser, decoded, parse_plain_text, stripped
from data_prep.sources.files import damaged_stretch
from data_prep.sources.plain_text import parts_of
from data_prep.sources.source import Source, SourceOptions
from electra_tf.platform.errors import UserError, one_line, shown
from electra_tf.platform.storage import file_sha256

_PARAGRAPH = "_START_PARAGRAPH_"
_KINDS = ("_START_ARTICLE_", "_START_SECTION_", _PARAGRAPH)
"""Markers that Wiki-40B puts before the lines of each kind."""


def data_set(name: str, feature: str, options: SourceOptions) -> "DataSet":
    """Returns the source of a data set, prepared if necessary; `UserError` for unknown names."""
    parse = parse_plain_text
    if name.partition("/")[0].partition(":")[0] == "wiki40b":
        parse = functools.partial(parse_wiki40b, options.wiki_headings)
    return DataSet(name, feature, options, parse)


@dataclasses.dataclass
class DataSet(Source):
    """A split of a data set, its rows in the order of its files."""

    name: str
    feature: str
    options: SourceOptions
    parse: Parser

    def __post_init__(self):
        import tensorflow_datasets as tfds  # Its import takes seconds.

        where = self.options.tfds_data_dir
        try:
            builder = tfds.builder(self.name, data_dir=where or None)
            builder.download_and_prepare()
        except (tfds.core.DatasetNotFoundError, tfds.download.DownloadError, OSError, ValueError
                ) as error:
            raise UserError(
                f"TensorFlow Datasets has no {shown(self.name)} in {where or 'its directory'} and "
                f"can't get it ({one_line(str(error), 150)}); name one that it has, and "
                "where it is with --tfds_data_dir.") from error
        try:
            split = builder.info.splits[self.options.tfds_split]
            self._files = tuple(pathlib.Path(one.filename) for one in split.file_instructions)
        except (KeyError, ValueError, AssertionError) as error:
            raise UserError(f"{self.name} has no split {shown(self.options.tfds_split)}; it has "
                            f"{', '.join(builder.info.splits)} (--tfds_split).") from error
        features = builder.info.features
        texts = sorted(
            name for name in features if isinstance(features[name], tfds.features.Text))
        if self.feature not in texts:
            raise UserError(f"{self.name} has no text feature {shown(self.feature)}; it has "
                            f"{', '.join(texts)}. Name the one that holds the text after the data "
                            "set: #FEATURE.")
        self._rows = split.num_examples
        self.size = sum(path.stat().st_size for path in self._files)
        self._read = 0

    def documents(self) -> Iterator[DocumentPart]:
        """Yields the rows; damage ends the rows."""
        import tensorflow as tf
        import tensorflow_datasets as tfds

        self._read = 0
        in_order = tfds.ReadConfig(interleave_cycle_length=1, try_autocache=False)
        builder = tfds.builder(self.name, data_dir=self.options.tfds_data_dir or None)
        place = f"tfds:{self.name}"
        try:
            rows = builder.as_dataset(split=self.options.tfds_split, shuffle_files=False,
                                      read_config=in_order)
            for row in tfds.as_numpy(rows.map(lambda row: row[self.feature])):
                yield from parts_of(row, f"{place}, row {self._read}")
                self._read += 1
        except tf.errors.OpError as error:
            yield damaged_stretch(place, (
                f"{place} in {builder.data_dir} is corrupt or cut short after row "
                f"{self._read} ({one_line(error.message or '', 150)})"))

    def position(self) -> int:
        """Returns the estimated bytes of the rows read so far."""
        return self.size * self._read // max(1, self._rows)

    def sha256(self) -> str:
        """Returns a digest of the data set's files and of the options that select text."""
        digest = hashlib.sha256(f"tfds {self.options.tfds_split}#{self.feature} "
                                f"headings={self.options.wiki_headings}".encode())
        for path in self._files:
            digest.update(bytes.fromhex(file_sha256(path)))
        return digest.hexdigest()


def parse_wiki40b(headings: bool, part: DocumentPart) -> Iterator[str]:
    """Yields the lines of an article of Wiki-40B, with title and headings if `headings` is True."""
    kind = _PARAGRAPH
    for line in stripped(decoded(part)):
        if line in _KINDS:
            kind = line
        elif kind == _PARAGRAPH:
            yield from filter(None, map(str.strip, line.split("_NEWLINE_")))
        elif headings:
            yield line
