"""The curve through measured runs."""

import re

import pytest

from electra_tf.apps.planning.learning_curves import NETWORKS, fit


def test_points_of_a_power_law_give_it_back():
    points = [(tokens, 0.9 - 12.0 * tokens**-0.3) for tokens in (1e6, 3e6, 2e7)]
    law = fit(points, limit=0.9)
    assert (law.scale, law.exponent) == pytest.approx((12.0, 0.3))
    assert law.at(1e8) == pytest.approx(0.9 - 12.0 * 1e8**-0.3)


def test_a_curve_is_never_worse_than_a_coin():
    assert fit([(1e6, 0.70), (1e7, 0.85)], limit=0.9).at(1.0) == 0.5


@pytest.mark.parametrize(("points", "words"), [
    ([(1e6, 0.7)], "two points"), ([(1e6, 0.7), (2e6, 0.9)], "below 0.9")])
def test_what_no_curve_fits_is_refused(points, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        fit(points, limit=0.9)


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.name)
def test_every_network_gains_by_tokens_and_is_near_what_was_measured(network):
    tokens = [count for count, _ in network.measured]
    assert tokens == sorted(tokens)
    assert all(abs(network.auc(count) - auc) < 0.01 for count, auc in network.measured)
    curve = [network.auc(10.0**power) for power in range(6, 13)]
    assert curve == sorted(curve) and curve[-1] < network.limit


def test_the_small_network_leads_early_and_the_large_one_late():
    """Or there would be nothing to choose; the small one is some four times as fast."""
    first, *_, last = NETWORKS
    assert first.auc(4e6) > last.auc(1e6)
    assert first.auc(4e9) < last.auc(1e9)
