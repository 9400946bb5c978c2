import math

import numpy as np
import pytest

from electra_tf.objectives.electra import detection_scores


def test_scores_equal_a_count_by_hand():
    # Called replaced: tokens 0, 1, 4. Replaced: 0, 2, 4, 5.
    replaced = np.array([1, 0, 1, 0, 1, 1], bool)
    logits = np.array([2.0, 0.5, -1.0, -3.0, 0.1, -0.2])
    scores = detection_scores(replaced, logits)
    assert scores["discriminator_accuracy"] == pytest.approx(3 / 6)
    assert scores["discriminator_precision"] == pytest.approx(2 / 3)
    assert scores["discriminator_recall"] == pytest.approx(2 / 4)
    assert scores["replaced_fraction"] == pytest.approx(4 / 6)
    # Of the 8 (replaced, original) pairs, 5 are in order: 2.0 beats both, 0.1, -0.2 and -1.0
    # beat -3.0 alone.
    assert scores["discriminator_auc"] == pytest.approx(5 / 8)


def test_nothing_called_replaced_is_no_precision_and_no_recall():
    scores = detection_scores(np.array([True, False]), np.array([-1.0, -2.0]))
    assert scores["discriminator_precision"] == scores["discriminator_recall"] == 0.0


def test_one_class_alone_has_no_area_under_the_curve():
    scores = detection_scores(np.array([False, False]), np.array([-1.0, 2.0]))
    assert math.isnan(scores["discriminator_auc"])
