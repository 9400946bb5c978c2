"""The files of a survey: each unit gets its own decisions, and damage is one line."""

import pytest

from data_prep.cleaning import plan, survey
from electra_tf.platform.errors import UserError

MADE = {"train-00000": [[1, 5], [], [0, 70_000]], "eval-00000": [[], [2], [3]]}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / ".cleaning-decisions"
    survey.save_arrays(path, {f"{name}/{reason}": numbers for name, found in MADE.items()
                              for reason, numbers in zip(survey.REASONS, found, strict=True)})
    return path


def test_every_unit_gets_its_own_decisions_back(path):
    assert {name: list(plan._decision(path, name).values()) for name in MADE} == MADE
    with pytest.raises(UserError, match=r"\.cleaning-decisions is damaged; remove it"):
        plan._decision(path, "train-00002")


@pytest.mark.parametrize("change", [
    lambda content: content[:-1], lambda content: content[30:], lambda content: b""],
    ids=["cut", "no head", "empty"])
def test_damage_is_one_line_that_names_the_file(path, change):
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(UserError, match=r"\.cleaning-decisions is damaged; remove it"):
        plan._decision(path, "eval-00000")
