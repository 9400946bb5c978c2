"""Fine-tuning learns, reports at intervals, and predicts in the order of the rows."""

import contextlib
import dataclasses
import json
import warnings

import numpy as np
import pytest
import tensorflow as tf
from scipy import special

from electra_tf.config.finetuning import FinetuningConfig
from electra_tf.config.model import ModelConfig
from electra_tf.config.overrides import override
from electra_tf.data.buckets import Row, make_batch
from electra_tf.export import servable
from electra_tf.finetuning import loop, predict, trials
from electra_tf.finetuning.predict import Predictor
from electra_tf.finetuning.run import FinetuningRun, prepare_trained
from electra_tf.formats import pretrained
from electra_tf.formats.pretrained import Checkpoint
from electra_tf.tasks.kinds.base import Scored
from electra_tf.tasks.task import Kind
from tests.support import tiny_networks
from tests.support.refusals import refused
from tests.support.tiny_task import run_of, task_of


def test_a_rule_is_learned_and_predicted_in_the_rows_order(tmp_path, monkeypatch):
    run, task = run_of(tmp_path), task_of()
    epochs = loop.train(run, task, None).best.epochs
    assert len(epochs) == 20
    assert epochs[-1].loss < 0.3 < 0.6 < epochs[0].loss
    model, split = run.trained_model(), run.encode(task.train)
    on_one_cpu = Predictor(run, model).predict(split.rows)
    assert split.score(on_one_cpu, None).scores["accuracy"] > 0.9
    for row, together in zip(split.rows[:3], on_one_cpu, strict=False):
        (alone,) = Predictor(run, model).predict([row])
        np.testing.assert_allclose(alone["logits"], together["logits"], atol=1e-5)
    monkeypatch.setattr(predict, "device_type", lambda strategy: "GPU")
    on_replicas = Predictor(run, model).predict(split.rows)
    for results, expected in zip(on_replicas, on_one_cpu, strict=True):
        np.testing.assert_allclose(results["logits"], expected["logits"], atol=1e-5)


def test_a_sentence_without_words_is_predicted_without_a_warning(monkeypatch):
    run = run_of()
    monkeypatch.setattr(Predictor, "_on_cores", lambda self, rows, plan: [{}] * len(plan))
    row = Row(np.zeros(0, np.int32), np.zeros(0, np.int32), {})
    with warnings.catch_warnings(action="error"):
        assert Predictor(run, run.build_model(0)).predict([row], lambda done: None) == [{}]


@pytest.mark.parametrize("weights", ["1,3", "1e-6,3e-6"])
@pytest.mark.parametrize("labels", [[0, 1, 1, 0, 0, 1, 0, 0], [1]])
@pytest.mark.parametrize("architecture", ["electra", "modernbert"])
def test_a_step_divides_by_the_sum_of_class_weights(weights, labels, architecture):
    """The mean and its gradient are those of PyTorch's CrossEntropyLoss(weight), by hand."""
    pooling = {"electra": "cls", "modernbert": "mean"}[architecture]
    run = run_of(training__freeze_layers=-1, task__class_weights=weights, task__dropout=0.0,
                 model__hidden_dropout=0.0, model__attention_dropout=0.0,
                 model__architecture=architecture, task__classifier_pooling=pooling)
    rows = [Row(np.array([2, 5 + index, 3], np.int32), np.zeros(3, np.int32),
                {"label": np.int32(label)}) for index, label in enumerate(labels)]
    batch, model = make_batch(rows, 8, (4,), pad_id=0), run.build_model(1)
    tokens = tuple(part[:len(labels)] for part in (batch.ids, batch.segment_ids,
                                                   batch.padding_mask))
    hidden = model.encoder(*map(tf.constant, tokens)).numpy().astype(float)
    vectors = hidden[:, 0] if pooling == "cls" else hidden[:, :3].mean(axis=1)
    logits = vectors @ model.head.dense.kernel.numpy() + model.head.dense.bias.numpy()
    results = loop.compile_train_step(run, model, num_steps=1, seed=1)(
        batch.ids.shape, run.distributed(batch))
    factors = np.array([float(part) for part in weights.split(",")])[labels]
    factors /= factors.sum()
    shares = special.softmax(logits, axis=1)
    gradient = factors[:, np.newaxis] * (shares - np.eye(2)[labels])
    norm = np.sqrt(np.sum((vectors.T @ gradient) ** 2) + np.sum(gradient.sum(axis=0) ** 2))
    loss = -np.sum(factors * np.log(shares[range(len(labels)), labels]))
    assert float(results["loss"].total / results["loss"].weight) == pytest.approx(loss, rel=1e-5)
    assert float(results["gradient_norm"].total) == pytest.approx(norm, rel=1e-4)


def test_training_begins_with_vectors_of_a_file_that_predictions_do_not_need(tmp_path):
    path = tmp_path / "vectors.npy"
    run, task = run_of(tmp_path / "run", training__num_train_epochs=1,
                       initialization__word_vectors=str(path)), task_of(20)
    vectors = np.zeros([run.text.vocabulary.size, 2])
    vectors[5:7] = 1.0
    np.save(path, vectors)
    words = run.build_model(seed=0).encoder.embeddings.words.table.numpy()
    words /= np.linalg.norm(words, axis=1, keepdims=True)
    assert words[5] @ words[6] > 0.6 > abs(words[5] @ words[4])
    loop.train(run, task, None)
    path.unlink()
    prepare_trained(tmp_path / "run", {}).trained_model()


def test_predictions_and_scores_are_float32_whatever_the_precision_of_training(
        tmp_path, monkeypatch):
    run, task = run_of(tmp_path, training__precision="bfloat16",
                       training__num_train_epochs=1), task_of(20)
    (epoch,) = loop.train(run, task, None).best.epochs
    served = servable.build(pretrained.read(tmp_path))
    expected = served.answer(tf.constant([example.texts[0] for example in task.train]))
    expected = expected["probabilities"].numpy()

    def assert_exact(records):
        np.testing.assert_allclose(
            [list(record["probabilities"].values()) for record in records], expected, atol=1e-5)

    assert_exact(map(json.loads, (tmp_path / "predictions/dev.jsonl").read_text().splitlines()))
    loaded = prepare_trained(tmp_path, {})
    split = loaded.encode(task.train)
    scored = predict.TaskPredictor(loaded).scored(split)
    assert_exact(scored.records)
    assert scored.scores == epoch.scores["dev"]
    chosen = prepare_trained(tmp_path, {"training.precision": "bfloat16"})
    with pytest.raises(AssertionError):
        assert_exact(predict.TaskPredictor(chosen).scored(split).records)
    model = run.trained_model()  # In bfloat16, as after an epoch.
    monkeypatch.setattr(predict, "device_type", lambda strategy: "GPU")
    on_replicas = Predictor(run.in_float32, model)
    for _ in range(2):
        assert_exact(split.score(on_replicas.predict(split.rows), None).records)
        expected = 1 - expected
        model.head.dense.kernel.assign(-model.head.dense.kernel)
        model.head.dense.bias.assign(-model.head.dense.bias)


def test_trials_depend_on_their_seeds_and_are_runs_of_a_tracker(tmp_path, monkeypatch, capsys):
    """Lines by time change nothing."""
    reports = []

    @contextlib.contextmanager
    def tracked(names, ids_file, config, facts, part):
        log = []
        reports.append((names, ids_file.name, config.training.seed, part, log))
        yield lambda step, values: log.append((step, dict(values)))

    monkeypatch.setattr(loop, "tracked", tracked)
    task, few = task_of(40, lengths=(3,)), {
        "training__num_train_epochs": 1, "runtime__log_every_steps": 4,
        "runtime__report_to": ("mlflow",)}
    first, other = loop.train(
        run_of(tmp_path / "a", training__num_trials=2, **few), task, None).trials
    assert [step for step, _ in first.losses] == [4, 5] and first.epochs[0].step == 5
    assert abs(first.losses[0][1] - other.losses[0][1]) > 1e-6
    assert [report[:-1] for report in reports] == [
        (("mlflow",), "trackers.json", seed, f"seed {seed}") for seed in (1, 2)]
    *losses, (step, scores) = reports[0][-1]
    assert losses == [(step, {"train/loss": pytest.approx(loss)}) for step, loss in first.losses]
    assert step == 5 and scores["dev/accuracy"] == first.scores["dev"]["accuracy"]
    capsys.readouterr()
    monkeypatch.setattr(loop.TrialProgress, "is_line_due", lambda self: True)
    again, = loop.train(run_of(tmp_path / "b", **few), task, None).trials
    assert capsys.readouterr().out.count("  step ") == 5
    assert again.losses == tuple((step, pytest.approx(loss, rel=1e-4))
                                 for step, loss in first.losses)


def test_a_trial_without_progress_stops_and_keeps_its_best_epoch(tmp_path, capsys):
    run = run_of(tmp_path, training__early_stopping=2, optimizer__learning_rate=1e-9,
                 training__freeze_layers=-1, task__class_weights="balanced")
    trial, = loop.train(run, task_of(16, lengths=(3,)), None).trials
    assert len(trial.epochs) == 3 and trial.kept_epoch == 1 and trial.stopped_early
    printed = capsys.readouterr().out
    assert "stopped after epoch 3 of 20: no better accuracy since epoch 1" in printed
    before, after = run.build_model(seed=1), run.trained_model()
    for name in ("encoder", "head"):
        equal = [np.array_equal(*pair) for pair in zip(
            getattr(before, name).get_weights(), getattr(after, name).get_weights(), strict=True)]
        assert all(equal) is (name == "encoder")  # The whole encoder is frozen.


@pytest.mark.parametrize(("scores", "kept"), [
    ([None, None, None], 3), ([None, 0.2, 0.1], 2), ([0.2, None, 0.2], 1)])
def test_an_epoch_without_a_score_is_kept_only_if_none_has_one(monkeypatch, scores, kept):
    run = run_of(training__num_train_epochs=3, training__keep_best=True)
    task, queue = task_of(8), iter(scores)
    data = trials.TrialData.encode(run, task, None)
    split = data.dev["dev"]._replace(score=lambda *_: Scored([], {"accuracy": next(queue)}))
    monkeypatch.setattr(loop, "_train_epoch", lambda run, step, rows, progress, *_, **__: (
        progress.trained(progress.step + 1, epoch=1) or ([], 0.5)))
    monkeypatch.setattr(Predictor, "predict", lambda *_: [])
    trial = loop.train_trial(run, run.build_model(0), dataclasses.replace(data, dev={"dev": split}),
                             ("accuracy",), trials.TrialPlan(seed=1), lambda *_: None)
    assert trial.kept_epoch == kept


@pytest.mark.parametrize(("size", "result"), [(np.nan, "loss"), (1e25, "gradient_norm")])
def test_a_loss_or_a_gradient_that_is_not_finite_ends_the_run_with_a_fix(
        tmp_path, monkeypatch, size, result):
    # With 1e25 the loss is finite; squares of the encoder's gradients are not.
    build_model = FinetuningRun.build_model

    def build(run, *arguments):
        model = build_model(run, *arguments)
        *_, output = (weight for weight in model.trainable_variables if "kernel" in weight.name)
        output.assign(size * output)
        return model

    monkeypatch.setattr(FinetuningRun, "build_model", build)
    with refused(f"{result} is not finite in epoch 1.*--learning_rate"):
        loop.train(run_of(tmp_path), task_of(8), None)


@pytest.mark.parametrize("changes", [
    {"model__num_heads": 1}, {"model__positions": "rotary"}, {"model__rotary_base": 100.0}])
def test_settings_with_which_the_initial_weights_compute_something_else_are_refused(
        tmp_path, changes):
    run = run_of(tmp_path)
    initial = Checkpoint(
        source="the initial encoder", config=ModelConfig(**dataclasses.asdict(
            run.config.model.discriminator)), text=run.text, weights={})
    (name,) = changes
    with refused(f"{name.replace('__', '.')} is .* in the initial encoder"):
        loop.train(run_of(tmp_path, **changes), task_of(8), initial)


@pytest.mark.parametrize("kind", [Kind.TAGGING, Kind.QUESTION_ANSWERING])
def test_a_hidden_layer_that_the_head_does_not_get_is_refused(kind):
    changes = {"task.hidden_layer": True}
    objective = tiny_networks.task_objective(kind, hidden_layer=True)
    with refused(f"needs model.architecture=modernbert for --task={kind}; leave it out"):
        objective.check_training(override(FinetuningConfig(), changes), 1)
    objective.check_training(override(FinetuningConfig(), changes | {
        "model.architecture": "modernbert", "model.positions": "rotary"}), 1)
