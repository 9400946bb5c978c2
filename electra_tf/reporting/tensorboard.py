"""Scalars and text for TensorBoard."""

from collections.abc import Mapping

import tensorflow as tf

from electra_tf.platform.storage import Path


class TensorBoardWriter:
    """Writes one run's event files."""

    def __init__(self, directory: str | Path):
        """Takes the directory of the event files, made when the first one is written."""
        self._writer = tf.summary.create_file_writer(str(directory))

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Writes named numbers at a step; a name's part before "/" groups it on the page."""
        with self._writer.as_default():
            for name, value in values.items():
                tf.summary.scalar(name, value, step=step)

    def text(self, step: int, name: str, markdown: str) -> None:
        """Writes a text, rendered as Markdown by TensorBoard, at a step."""
        with self._writer.as_default():
            tf.summary.text(name, markdown, step=step)

    def flush(self) -> None:
        """Puts what was written onto the disk."""
        self._writer.flush()
