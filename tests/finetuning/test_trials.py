"""Grids and folds: which trials run, resume and are kept."""

import dataclasses
import json

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from electra_tf.finetuning import loop
from electra_tf.finetuning.results import Epoch, Trial
from electra_tf.formats import pretrained
from electra_tf.tasks import files
from electra_tf.tasks.task import TextExample
from tests.support.refusals import refused
from tests.support.tiny_task import run_of, task_of

RATE, HIDDEN = "optimizer.learning_rate", "task.hidden_layer"
GRID = {RATE: (1e-3, 3e-3), HIDDEN: (False, True)}
TASK = task_of(24, lengths=(3,))


@pytest.fixture
def trained(monkeypatch):
    """Gives trials the queued accuracies instead of training; records what they get."""
    queue, calls = [], []

    def train_trial(run, model, data, metrics, plan, track):
        if not queue:
            raise KeyboardInterrupt
        calls.append((run, data, plan, model.get_weights()))
        model.head.dense.bias.assign_add([len(calls), 0.0])
        score, *kept_epoch = queue.pop(0)
        epochs = tuple(
            Epoch(epoch=number, step=run.config.num_train_steps(len(data.rows)), loss=0.5,
                  scores={name: {"accuracy": score} for name in data.dev}) for number in (1, 2))
        return Trial(seed=plan.seed, losses=((1, 0.5),), epochs=epochs, seconds=1.0,
                     kept_epoch=(*kept_epoch, 2)[0], examples_per_second=1.0,
                     changes=plan.changes, fold=plan.fold)

    monkeypatch.setattr(loop, "train_trial", train_trial)
    return queue, calls


def settings(run):
    return json.loads((run.model_dir / "settings.json").read_text())


def test_a_grid_resumes_and_keeps_the_settings_of_the_best_trial(trained, tmp_path, capsys):
    queue, calls = trained
    run = dataclasses.replace(run_of(tmp_path, training__num_trials=2), grid=GRID)
    queue += [(0.5,), (0.7,), (0.9,)]
    with pytest.raises(KeyboardInterrupt):
        loop.train(run, TASK, None)
    queue += [(0.6,), (0.5,), (0.8,), (0.4,), (0.6,)]
    results = loop.train(run, TASK, None)
    combinations = [{RATE: rate, HIDDEN: hidden} for rate in GRID[RATE] for hidden in GRID[HIDDEN]]
    assert [dict(trial.changes) for trial in results.trials] == 2 * combinations
    assert [trial.seed for trial in results.trials] == [1] * 4 + [2] * 4
    assert [run.config.optimizer.learning_rate for run, *_ in calls[:4]] == 2 * [1e-3] + 2 * [3e-3]
    assert results.best is results.trials[2]
    assert settings(run) | combinations[2] == settings(run)
    assert [line.split() for line in capsys.readouterr().out.splitlines()
            if line.startswith("  learning_rate=0.00")] == [
        ["learning_rate=0.001,", "hidden_layer=False", "50.00", "2"],
        ["learning_rate=0.001,", "hidden_layer=True", "75.00", "2"],
        ["learning_rate=0.003,", "hidden_layer=False", "65.00", "2"],
        ["learning_rate=0.003,", "hidden_layer=True", "60.00", "2"]]
    model = run.with_settings(combinations[2]).trained_model()
    np.testing.assert_allclose(model.head.dense.bias, [3, 0])
    assert loop.train(run, TASK, None) == results and len(calls) == 8
    with refused("grid: .* in the run, .*; learning_rate=0.5 now"):
        loop.train(dataclasses.replace(run, grid={RATE: (1e-3, 0.5)}), TASK, None)


def test_folds_are_scored_once_and_the_kept_model_learns_from_all(trained, tmp_path, capsys):
    queue, calls = trained
    run = run_of(tmp_path, training__num_folds=3, training__keep_best=True)
    queue += [(0.5, 1), (0.7, 1), (0.9, 2), (0.0,)]
    results = loop.train(run, dataclasses.replace(TASK, dev={}), None)
    scored = [example.key for _, data, *_ in calls for example in data.dev_examples.get("dev", ())]
    assert sorted(scored, key=int) == [example.key for example in TASK.train]
    for _, data, *_ in calls[:3]:
        assert len(data.examples) == 16 and not {example.texts for example in data.examples} & {
            example.texts for example in data.dev_examples["dev"]}
    assert [trial.fold for trial in results.trials] == [1, 2, 3, 0]
    assert len(calls[3][1].examples) == 24 and calls[3][2].max_epochs == 1
    assert results.summary()["dev"]["accuracy"] == pytest.approx(
        {"mean": 0.7, "median": 0.7, "std": 0.2, "best": 0.9})
    np.testing.assert_allclose(run.trained_model().head.dense.bias, [4, 0])
    assert "  accuracy  70.00   70.00  20.00  90.00   50.00   70.00   90.00" in (
        capsys.readouterr().out)
    assert loop.train(run, dataclasses.replace(TASK, dev={}), None) == results


def test_a_grid_with_folds_takes_the_settings_with_the_best_mean(trained, tmp_path):
    queue, _ = trained
    run = dataclasses.replace(run_of(tmp_path, training__num_folds=2), grid={RATE: (1e-3, 3e-3)})
    queue += [(0.9,), (0.1,), (0.6,), (0.5,), (0.0,)]
    results = loop.train(run, dataclasses.replace(TASK, dev={}), None)
    assert results.best.fold == 0 and results.best.changes == {RATE: 3e-3}
    assert settings(run)[RATE] == 3e-3


def test_folds_are_stratified_like_those_of_scikit_learn():
    labels = np.array(list("aaaaaaabbbbbbbbbbbcc"))
    examples = [TextExample(key=str(number), texts=(str(number),), label=label)
                for number, label in enumerate(labels)]
    numbers = files.fold_numbers(examples, 4)
    counts = [sorted(sum(labels[numbers == fold] == label) for fold in range(4)) for label in "abc"]
    expected = [sorted(sum(labels[scored] == label) for _, scored in StratifiedKFold(4).split(
        labels, labels)) for label in "ab"]
    assert counts == [*expected, [0, 0, 1, 1]]


@pytest.mark.parametrize(("changes", "count", "dev", "words"), [
    ({"num_folds": 1}, 24, {}, "--num_folds must be 2 or more.* 1"),
    ({"num_folds": 5}, 4, {}, "--num_folds must be at most 2"),
    ({"num_folds": 3, "num_trials": 2}, 24, {}, "--num_trials"),
    ({"num_folds": 3}, 24, {"dev": TASK.train}, "--train without --dev")])
def test_impossible_folds_are_refused_before_a_file_is_written(
        tmp_path, changes, count, dev, words):
    run = run_of(tmp_path / "run", **{f"training__{key}": value for key, value in changes.items()})
    with refused(words):
        loop.train(run, dataclasses.replace(TASK, train=TASK.train[:count], dev=dev), None)
    assert not (tmp_path / "run").exists()


def test_a_fine_tuned_run_keeps_its_head_for_equal_labels(trained, tmp_path, capsys):
    queue, _ = trained
    queue += [(0.5,), (0.5,)]
    run = run_of(tmp_path / "first")
    loop.train(run, TASK, None)
    initial = pretrained.read(tmp_path / "first")
    other_labels = dataclasses.replace(run, spec=dataclasses.replace(run.spec, labels=("a", "b")))
    for other, bias in ((run, [1, 0]), (other_labels, [0, 0]),
                        (run.with_settings({HIDDEN: True}), [0, 0])):
        np.testing.assert_array_equal(other.build_model(7, initial).head.dense.bias, bias)
    loop.train(run_of(tmp_path / "second"), TASK, initial)
    printed = capsys.readouterr().out
    assert f"\nencoder  and head initialized from {tmp_path}/first, step " in printed
    changed = dataclasses.replace(initial, weights={
        name: weight + 1 for name, weight in initial.weights.items()})
    with refused("initial_digest: .* in the run, .* now"):  # Also of a finished run.
        loop.train(run_of(tmp_path / "second"), TASK, changed)
