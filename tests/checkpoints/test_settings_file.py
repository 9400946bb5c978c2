"""A run's settings.json read back, and damaged."""

import json

import pytest

from electra_tf.checkpoints import run_directory
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.platform import storage
from electra_tf.platform.errors import UserError

FACTS = {"lower_case": True, "strip_accents": True, "dataset": "x", "initial": None}


def written(directory, name, **changes):
    config = override(PretrainingConfig(), {"objective.name": name})
    path = storage.path(directory) / "settings.json"
    path.write_text(json.dumps(run_directory.identity(config, FACTS) | {
        key.replace("__", "."): value for key, value in changes.items()}))
    return path.parent


def test_a_directory_that_tensorflow_takes_for_a_pattern_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"\[run\] contains one of .* choose another name"):
        run_directory.claim(storage.path(tmp_path / "[run]"), {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["electra", "mlm"])
def test_settings_come_back(tmp_path, name):
    saved = run_directory.read_identity(written(tmp_path, name))
    config = override(PretrainingConfig(), run_directory.settings_of(saved))
    assert config.objective.name == name
    assert saved == run_directory.identity(config, FACTS)


@pytest.mark.parametrize(("changes", "words"), [
    ({"objective__name": "gan"}, "objective.name must be one of"),
    ({"objective__policy_loss_weight": 1.0}, "objective.policy_loss_weight isn't a setting"),
    ({"objective__lambda": 50.0}, "unknown setting 'objective.lambda'"),
    ({"objective__generator_loss_weight": "1"}, "weight must be of type float. Received: '1'")])
def test_a_damaged_objective_is_one_line(tmp_path, changes, words):
    with pytest.raises(UserError, match=f"settings.json is damaged: .*{words}"):
        run_directory.read_identity(written(tmp_path, "electra", **changes))
