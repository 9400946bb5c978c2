"""The curve through measured runs."""

import pytest

from electra_tf.reporting.learning_curves import NETWORKS, fit


def test_points_of_a_power_law_give_it_back():
    points = [(tokens, 0.9 - 12.0 * tokens**-0.3) for tokens in (1e6, 3e6, 2e7)]
    law = fit(points, limit=0.9)
    assert law(1.0) == 0.5  # Never worse than a coin.
    assert law(1e8) == pytest.approx(0.9 - 12.0 * 1e8**-0.3)


def test_every_network_gains_by_tokens_and_is_near_what_was_measured():
    for network in NETWORKS:
        assert all(abs(network.auc(count) - auc) < 0.01 for count, auc in network.measured)
        curve = [network.auc(10.0**power) for power in range(6, 13)]
        assert curve == sorted(curve) and curve[-1] < network.limit
    # Or there would be nothing to choose; the small one is some four times as fast.
    first, *_, last = NETWORKS
    assert first.auc(4e6) > last.auc(1e6) and first.auc(4e9) < last.auc(1e9)
