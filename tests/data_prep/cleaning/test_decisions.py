"""The file of decisions: what is saved is loaded, and damage is one line."""

import numpy as np
import pytest

from data_prep.cleaning import decisions
from data_prep.cleaning.decisions import UnitDecision
from electra_tf.platform.errors import UserError

MADE = {"train-00000": UnitDecision(np.array([1, 5]), np.array([], int), np.array([0, 70_000])),
        "train-00001": UnitDecision(),
        "eval-00000": UnitDecision(np.array([], int), np.array([2]), np.array([3]))}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / ".cleaning-decisions"
    decisions.save(path, "this build", MADE)
    return path


def test_every_unit_gets_its_own_decisions_back_of_one_build(path, tmp_path):
    for name, made in MADE.items():
        found = decisions.load(path, "this build", name)
        for field in vars(made):
            assert getattr(found, field).tolist() == list(getattr(made, field))
    assert decisions.are_saved(path, "this build")
    assert not decisions.are_saved(path, "another build")
    assert not decisions.are_saved(tmp_path / "none", "this build")
    for build, name in (("this build", "train-00002"), ("another build", "train-00000")):
        with pytest.raises(UserError, match=r"\.cleaning-decisions is damaged; remove it"):
            decisions.load(path, build, name)


@pytest.mark.parametrize("change", [
    lambda content: content[:-1], lambda content: content[30:], lambda content: b""],
    ids=["cut", "no head", "empty"])
def test_damage_is_one_line_that_names_the_file(path, change):
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(UserError, match=r"\.cleaning-decisions is damaged; remove it"):
        decisions.load(path, "this build", "eval-00000")
