"""Settings of speed and reports."""

import pytest

from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.config.runtime import RuntimeConfig
from electra_tf.platform.errors import UserError


@pytest.mark.parametrize(("steps", "interval"), [
    (1, 1), (12, 1), (40, 2), (1000, 50), (2000, 100), (1_000_000, 100)])
def test_a_short_run_reports_often_enough_for_a_curve(steps, interval):
    assert RuntimeConfig().log_interval(steps) == interval
    assert steps // interval >= min(20, steps)


def test_an_interval_that_was_asked_for_is_taken():
    assert RuntimeConfig(log_every_steps=7).log_interval(1_000) == 7
    with pytest.raises(UserError, match="runtime.log_every_steps must be 0 or more"):
        override(PretrainingConfig(), {"runtime.log_every_steps": -1})
