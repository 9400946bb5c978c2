"""Curves of any length become a figure; smoothing is a plain mean; curves of measured runs."""

import pytest
from matplotlib.image import imread

from electra_tf.reporting.learning_curves import NETWORKS, MeasuredNetwork
from electra_tf.reporting.loss_curves import draw_curves, smooth


def records(count, **extra):
    return [{"kind": "train", "step": 10 * (index + 1), "loss": 45.0 / (index + 1),
             "generator_loss": 10.0, "learning_rate": 1e-4, **extra} for index in range(count)]


def test_long_curves_are_means_over_a_thirtieth_to_either_side():
    assert smooth([3.0, 1.0, 2.0]) == [3.0, 1.0, 2.0] and smooth([]) == []
    values = [0.0] * 60
    values[30] = 5.0
    smoothed = smooth(values)
    assert smoothed[28:33] == [1.0] * 5  # 60 // 30 = 2 to either side: a mean of 5 values
    assert smoothed[27] == smoothed[33] == 0.0
    assert smooth([45.0, *[10.0] * 99])[0] == 45.0


# A column is 598 pixels wide (4.6 inches at 130 dots), a row 403 high.
@pytest.mark.parametrize(("run", "width", "height"), [
    (records(200), 3, 1),
    (records(3, discriminator_recall=0.5, discriminator_auc=0.7), 2, 2),
    ([{"kind": "eval", "step": 5, "loss": 12.0}], 1, 1),
    (records(3, discriminator_loss=float("nan")), 3, 1),
])
def test_only_panels_with_finite_values_are_drawn(tmp_path, run, width, height):
    for runs in ({"run": run}, {"run": run, "shorter": run[:1]}):
        draw_curves(runs, tmp_path / "curves.png")
        assert imread(tmp_path / "curves.png").shape[:2] == (403 * height, 598 * width)
    assert [path.name for path in tmp_path.iterdir()] == ["curves.png"]


def test_points_of_a_power_law_give_its_exponent():
    law = MeasuredNetwork(size="tiny", limit=0.9, measured=tuple(
        (tokens, 0.9 - 12.0 * tokens**-0.3) for tokens in (1e6, 3e6, 2e7)))
    assert law.auc(1.0) == 0.5  # Never worse than a coin.
    assert law.auc(1e8) == pytest.approx(0.9 - 12.0 * 1e8**-0.3)
    for network in NETWORKS:
        assert all(abs(network.auc(count) - auc) < 0.01 for count, auc in network.measured)
        curve = [network.auc(10.0**power) for power in range(6, 13)]
        assert curve == sorted(curve) and curve[-1] < network.limit
