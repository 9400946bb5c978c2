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


def test_every_unit_gets_its_own_decisions_back(path):
    for name, made in MADE.items():
        found = decisions.load(path, "this build", name)
        for field in vars(made):
            assert getattr(found, field).tolist() == list(getattr(made, field))


def test_decisions_are_of_one_build(path, tmp_path):
    assert decisions.are_saved(path, "this build")
    assert not decisions.are_saved(path, "another build")
    assert not decisions.are_saved(tmp_path / "none", "this build")


@pytest.mark.parametrize("damage", [
    lambda path: path.write_bytes(path.read_bytes()[:-1]),
    lambda path: path.write_bytes(b"{}" + path.read_bytes()),
    lambda path: path.write_bytes(b""),
], ids=["cut", "no head", "empty"])
def test_damage_is_one_line_that_names_the_file(path, damage):
    damage(path)
    with pytest.raises(UserError, match=r"\.cleaning-decisions is damaged; remove it"):
        decisions.load(path, "this build", "eval-00000")


def test_a_unit_that_was_not_surveyed_is_refused(path):
    with pytest.raises(UserError, match="is damaged"):
        decisions.load(path, "this build", "train-00002")
