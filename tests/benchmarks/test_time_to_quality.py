"""When a curve reaches a goal, what the table says of it, and what the peers are handed."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from benchmarks.time_to_quality import __main__ as benchmark
from benchmarks.time_to_quality import report
from benchmarks.time_to_quality.examples import export
from benchmarks.time_to_quality.report import Curve, Point, of_records
from electra_tf.data.manifest import Records
from electra_tf.data.pipeline import training_batches
from electra_tf.platform.errors import UserError
from tests import command_flags, tiny_records
from tests.parity import peers

ROOT = pathlib.Path(__file__).parents[2]


def curve(name: str, *seconds_and_aucs: tuple[float, float]) -> Curve:
    return Curve(name=name, title=name, steps=10, points=[
        Point(step=index + 1, seconds=seconds, tokens=int(1000 * seconds), auc=auc, recall=0.5,
              unigram_auc=auc, bigram_auc=auc, generator_loss=4.0)
        for index, (seconds, auc) in enumerate(seconds_and_aucs)])


def test_a_goal_between_two_evaluations_lies_on_the_line_between_them():
    found = curve("short", (10.0, 0.6), (20.0, 0.8), (30.0, 0.9))
    assert found.reaches(0.6) == pytest.approx((10.0, 10_000))
    assert found.reaches(0.55) == pytest.approx((5.0, 5_000))
    assert found.reaches(0.75) == pytest.approx((17.5, 17_500))
    assert found.reaches(0.91) is None


def test_a_goal_is_reached_for_good_or_not_at_all():
    found = curve("short", (10.0, 0.8), (20.0, 0.6), (30.0, 0.7))
    assert found.reaches(0.65) == pytest.approx((25.0, 25_000))
    assert found.reaches(0.55)[0] == pytest.approx(10.0 / 6)
    assert found.reaches(0.75) is None


def test_seconds_are_those_of_the_training_intervals():
    scores = {f"{kind}_auc": 0.7 for kind in ("discriminator", "unigram", "bigram")}
    scores |= {"discriminator_recall": 0.1, "generator_loss": 5.0}
    points = of_records([
        {"kind": "train", "step": 10, "tokens_per_second": 100.0},
        {"kind": "eval", "step": 10, **scores},
        {"kind": "train", "step": 15, "tokens_per_second": 50.0},
        {"kind": "checkpoint", "step": 15},
        {"kind": "train", "step": 20, "tokens_per_second": 25.0},
        {"kind": "eval", "step": 20, **scores}], tokens_per_step=20)
    assert [(point.step, point.seconds, point.tokens) for point in points] == [
        (10, 2.0, 200), (20, 8.0, 400)]


def test_ratios_are_to_the_fastest_that_got_there_or_to_the_longest_that_did_not():
    curves = [curve("short", (10.0, 0.7)), curve("paper", (100.0, 0.52), (200.0, 0.58)),
              curve("hf", (100.0, 0.54))]
    page = "\n".join(report.page(curves, [0.54, 0.6]))
    assert "- 0.54: 50.0 times fewer seconds" in page
    assert "- 0.60: more than 40.0 times fewer: no other reached it" in page
    assert "| hf     | 100 s (0.10M tokens) |" in page and "not in 100 s |" in page


def test_the_peers_get_our_examples_in_our_order_and_the_same_corruptions(tmp_path):
    tiny_records.write(tmp_path / "records")
    (tmp_path / "out").mkdir()
    export(tmp_path / "records", tmp_path / "out", seed=3, window=1024, batch=4, steps=5,
           eval_batches=2, eval_batch=6)
    train = np.load(tmp_path / "out" / "train.npy")
    ours = training_batches(
        Records.load(tmp_path / "records"), pad_id=0, seed=3, window_examples=1024,
        global_batch_size=4, first_step=0, last_step=5, context=tf.distribute.InputContext())
    np.testing.assert_array_equal(train, [rows.ids for rows in ours.as_numpy_iterator()])
    with np.load(tmp_path / "out" / "held_out.npz") as held_out:
        assert held_out["ids"].shape == (2, 6, tiny_records.LENGTH)
        assert held_out["valid"].any(axis=-1).sum() == tiny_records.HELD_OUT
        replaced = (held_out["unigram"] != held_out["ids"])[held_out["valid"]]
        assert 0.05 < replaced.mean() < 0.2
        # In these sentences every word tells the next one.
        np.testing.assert_array_equal(held_out["bigram"], held_out["ids"])


def test_wrong_flags_are_one_line():
    with command_flags.defined(benchmark.define):
        for given, problem in (
                ([], "--data_dir is needed"), (["--minutes=jax:3"], "--minutes .* 'jax:3'"),
                (["--minutes=short:-1"], "--minutes .* 'short:-1'"), (["--goals=0.4"], "--goals"),
                (["--peers_python=/nowhere"], "--peers_python: there is no /nowhere")):
            data = ["--data_dir=x"] if given else []
            with pytest.raises(UserError, match=problem):
                command_flags.call(benchmark.main, *data, *given)


@pytest.mark.slow
def test_ours_and_the_peer_run_and_write_table_numbers_and_picture(tmp_path):
    tiny_records.write(tmp_path / "records")
    systems = "short:0.02,hf:0.02" if peers.PYTHON.exists() else "short:0.02"
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.time_to_quality", f"--data_dir={tmp_path / 'records'}",
         f"--minutes={systems}", "--evaluations=2", "--eval_steps=1", "--train_batch_size=4",
         f"--peers_python={peers.PYTHON}", f"--output_dir={tmp_path / 'out'}",
         *(f"--set=model.{name}" for name in (
             "hidden_size=32", "embedding_size=16", "intermediate_size=64", "num_layers=1"))],
        cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "out" / "time_to_quality.md").read_text()
    assert "electra_tf, --recipe=short" in page
    assert "failed" not in page
    assert page.count("in the end AUC 0.") == len(systems.split(","))
    assert (tmp_path / "out" / "time_to_quality.png").stat().st_size > 10_000
