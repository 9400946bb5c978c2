"""The files of a survey: what is saved is loaded, and damage is one line."""

import numpy as np
import pytest

from data_prep.cleaning.survey import UnitDecision, load_decision, save_decisions
from electra_tf.platform.errors import UserError

MADE = {"train-00000": UnitDecision(np.array([1, 5]), np.array([], int), np.array([0, 70_000])),
        "train-00001": UnitDecision(),
        "eval-00000": UnitDecision(np.array([], int), np.array([2]), np.array([3]))}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / ".cleaning-decisions"
    save_decisions(path, MADE)
    return path


def test_every_unit_gets_its_own_decisions_back(path):
    for name, made in MADE.items():
        found = load_decision(path, name)
        for field in vars(made):
            assert getattr(found, field).tolist() == list(getattr(made, field))
    with pytest.raises(UserError, match=r"\.cleaning-decisions is damaged; remove it"):
        load_decision(path, "train-00002")


@pytest.mark.parametrize("change", [
    lambda content: content[:-1], lambda content: content[30:], lambda content: b""],
    ids=["cut", "no head", "empty"])
def test_damage_is_one_line_that_names_the_file(path, change):
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(UserError, match=r"\.cleaning-decisions is damaged; remove it"):
        load_decision(path, "eval-00000")
