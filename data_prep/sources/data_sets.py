"""TensorFlow Datasets: a row is a document, one of its features the text."""

import dataclasses
import hashlib
import pathlib
from collections.abc import Iterator
from typing import Any

from data_prep.documents import DocumentPart, Parser, decoded, parse_plain_text, stripped
from data_prep.sources.files import damaged_stretch
from data_prep.sources.plain_text import parts_of
from data_prep.sources.source import Options, Source
from electra_tf.platform.errors import UserError, shown

TEXT_FEATURE = "text"
_WIKI40B = "wiki40b"


def data_set(name: str, feature: str, options: Options) -> "DataSet":
    """Returns the source of a data set of TensorFlow Datasets, prepared if need be.

    Raises:
        UserError: the data set, split or feature does not exist or cannot be downloaded.
    """
    wiki40b = name.partition("/")[0].partition(":")[0] == _WIKI40B
    return DataSet(name, feature, options,
                   Wiki40bParser(options.headings) if wiki40b else parse_plain_text)


@dataclasses.dataclass
class DataSet(Source):
    """A split of a data set, its rows in the order of its files."""

    name: str
    feature: str
    options: Options
    parse: Parser

    def __post_init__(self):
        import tensorflow_datasets as tfds  # Here: it takes seconds.

        where = self.options.tfds_data_dir
        try:
            builder = tfds.builder(self.name, data_dir=where or None)
            builder.download_and_prepare()
        except (tfds.core.DatasetNotFoundError, tfds.download.DownloadError, OSError, ValueError
                ) as error:
            raise UserError(
                f"TensorFlow Datasets has no {shown(self.name)} in {where or 'its directory'} and "
                f"can't get it ({' '.join(str(error).split())[:150]}); name one that it has, and "
                "where it is with --tfds_data_dir.") from error
        try:
            split = builder.info.splits[self.options.tfds_split]
            self._files = tuple(pathlib.Path(one.filename) for one in split.file_instructions)
        except (KeyError, ValueError, AssertionError) as error:
            raise UserError(f"{self.name} has no split {shown(self.options.tfds_split)}; it has "
                            f"{', '.join(builder.info.splits)} (--tfds_split).") from error
        self._rows = split.num_examples
        self._require_text(builder.info.features, tfds)
        self.size = sum(path.stat().st_size for path in self._files)
        self._read = 0

    def _require_text(self, features: Any, tfds: Any) -> None:
        if self.feature not in features:
            raise UserError(f"{self.name} has no feature {shown(self.feature)}; it has "
                            f"{', '.join(features)}. Name the one that holds the text behind the "
                            "data set: #FEATURE.")
        if not isinstance(features[self.feature], tfds.features.Text):
            raise UserError(f"{self.name}: the feature {shown(self.feature)} must be text. "
                            f"Received: {features[self.feature]}")

    def documents(self) -> Iterator[DocumentPart]:
        """See `Source`."""
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
                f"{place} in {builder.data_dir} is corrupt or cut short behind row "
                f"{self._read} ({' '.join((error.message or '').split())[:150]})"))

    def position(self) -> int:
        """See `Source`."""
        return self.size * self._read // max(1, self._rows)

    def sha256(self) -> str:
        """See `Source`: over the data set's files, and what of them is read how."""
        digest = hashlib.sha256(
            f"tfds {self.options.tfds_split}#{self.feature} headings={self.options.headings}"
            .encode())
        for path in self._files:
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest()


@dataclasses.dataclass(frozen=True)
class Wiki40bParser:
    """Reads articles of Wiki-40B, in which words like _START_PARAGRAPH_ tell what follows."""

    headings: bool

    def __call__(self, part: DocumentPart) -> Iterator[str]:
        """See `Parser`."""
        kind = "_START_PARAGRAPH_"
        text = decoded(part, "make the data set again")
        for line in stripped(text):
            if line in _WIKI40B_KINDS:
                kind = line
            elif kind == "_START_PARAGRAPH_":
                yield from filter(None, map(str.strip, line.split("_NEWLINE_")))
            elif self.headings:
                yield line


_WIKI40B_KINDS = ("_START_ARTICLE_", "_START_SECTION_", "_START_PARAGRAPH_")
