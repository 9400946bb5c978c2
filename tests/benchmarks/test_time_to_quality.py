"""When a curve reaches a goal, and what the peer is handed."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from benchmarks.time_to_quality.__main__ import export, reached
from benchmarks.time_to_quality.ours import points_of
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.data import mixture
from electra_tf.data.pipeline import training_batches
from tests import tiny_records
from tests.parity import peers

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize(("points", "goal", "seconds"), [
    ([(10.0, 0.6), (20.0, 0.8)], 0.6, 10.0),
    ([(10.0, 0.6), (20.0, 0.8)], 0.55, 5.0),
    ([(10.0, 0.6), (20.0, 0.8)], 0.75, 17.5),
    ([(10.0, 0.6), (20.0, 0.8)], 0.81, None),
    ([(10.0, 0.8), (20.0, 0.6), (30.0, 0.7)], 0.65, 25.0),  # For good, or not at all.
    ([(10.0, 0.8), (20.0, 0.6), (30.0, 0.7)], 0.75, None),
    ([], 0.6, None),
])
def test_a_goal_between_two_evaluations_lies_on_the_line_between_them(points, goal, seconds):
    assert reached(points, goal) == (None if seconds is None else pytest.approx(seconds))


def test_seconds_are_those_of_the_training_intervals():
    assert points_of([
        {"kind": "train", "step": 10, "tokens_per_second": 100.0},
        {"kind": "eval", "step": 10, "discriminator_auc": 0.6},
        {"kind": "train", "step": 15, "tokens_per_second": 50.0},
        {"kind": "checkpoint", "step": 15},
        {"kind": "train", "step": 20, "tokens_per_second": 25.0},
        {"kind": "eval", "step": 20, "discriminator_auc": 0.7},
    ], tokens_per_step=20) == [(2.0, 0.6), (8.0, 0.7)]


def test_the_peer_gets_our_examples_in_our_order(tmp_path):
    tiny_records.write(tmp_path / "records")
    settings = override(PretrainingConfig(), {
        "training.train_batch_size": 4, "training.seed": 3, "runtime.eval_batch_size": 6})
    export(tmp_path / "records", tmp_path, settings, pad_id=0, steps=5)
    ours = training_batches(
        mixture.load(tmp_path / "records"), pad_id=0, seed=3,
        window_examples=settings.data.shuffle_window,
        global_batch_size=4, first_step=0, last_step=5, context=tf.distribute.InputContext())
    np.testing.assert_array_equal(
        np.load(tmp_path / "train.npy"), [rows.ids for rows in ours.as_numpy_iterator()])
    with np.load(tmp_path / "held_out.npz") as held_out:
        assert held_out["ids"].shape[1:] == (6, tiny_records.LENGTH)
        assert held_out["valid"].any(axis=-1).sum() == tiny_records.HELD_OUT


@pytest.mark.slow
def test_ours_and_the_peer_run_and_write_table_numbers_and_picture(tmp_path):
    tiny_records.write(tmp_path / "records")
    systems = "short,hf" if peers.PYTHON.exists() else "short"
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.time_to_quality", f"--data_dir={tmp_path / 'records'}",
         f"--systems={systems}", "--num_train_steps=80", "--train_batch_size=4",
         f"--peers_python={peers.PYTHON}", f"--output_dir={tmp_path / 'out'}",
         *(f"--set=model.{name}" for name in (
             "hidden_size=32", "embedding_size=16", "intermediate_size=64", "num_layers=1"))],
        cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "out" / "time_to_quality.md").read_text()
    assert "failed" not in page
    aucs = [float(line.split("|")[-2]) for line in page.splitlines() if line.startswith("| ")][1:]
    assert len(aucs) == len(systems.split(",")) and min(aucs) > 0.2
    assert (tmp_path / "out" / "time_to_quality.png").stat().st_size > 10_000
