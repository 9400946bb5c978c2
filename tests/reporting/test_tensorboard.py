"""What is written is what TensorBoard reads."""

import tensorflow as tf

from electra_tf.reporting.tensorboard import TensorBoardWriter


def test_scalars_and_text_are_read_back_with_their_steps(tmp_path):
    board = TensorBoardWriter(tmp_path)
    board.scalars(7, {"loss": 1.5, "rate": 0.25})
    board.text(9, "samples", "**bold**")
    board.flush()
    events = [event for path in tmp_path.iterdir()
              for event in tf.compat.v1.train.summary_iterator(str(path))]
    read = {value.tag: (event.step, tf.make_ndarray(value.tensor))
            for event in events for value in event.summary.value}
    assert read["loss"] == (7, 1.5)
    assert read["rate"] == (7, 0.25)
    assert read["samples"] == (9, b"**bold**")
