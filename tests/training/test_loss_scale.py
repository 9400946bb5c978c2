import tensorflow as tf

from electra_tf.training.step import LossScale


def test_the_scale_halves_after_an_overflow_and_never_falls_below_one():
    scale = LossScale(enabled=True)
    scale.good_steps.assign(1998)
    scale.update(tf.constant(False))
    assert float(scale.scale) == 2.0**14 and int(scale.good_steps) == 0
    off = LossScale(enabled=False)
    off.update(tf.constant(False))
    assert float(off.scale) == 1.0
    for _ in range(20):
        scale.update(tf.constant(False))
    assert float(scale.scale) == 1.0


def test_the_scale_doubles_after_2000_good_steps_in_a_row():
    scale = LossScale(enabled=True)
    scale.good_steps.assign(1998)
    scale.update(tf.constant(True))
    assert float(scale.scale) == 2.0**15
    scale.update(tf.constant(True))
    assert float(scale.scale) == 2.0**16
    assert int(scale.good_steps) == 0
