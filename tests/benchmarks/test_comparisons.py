"""What the comparisons measure and print, except pre-training's speed."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from sklearn import metrics

from benchmarks.data_prep.__main__ import table, write_beginning
from benchmarks.harness.turns import Measurement, Role, System
from benchmarks.serving import __main__ as serving
from benchmarks.serving import models
from benchmarks.time_to_quality.__main__ import export, seconds_to
from benchmarks.time_to_quality.ours import points_of
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.data.manifest import load_records
from electra_tf.data.pipeline import training_batches
from electra_tf.platform.errors import UserError
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support import peers, tiny_records

ROOT = pathlib.Path(__file__).parents[2]
VOCABULARY = Vocabulary((*SPECIAL_TOKENS, "a", "film", "##s", "good", "dull"))
SENTENCES = ["a good film", "films films", "dull"]


def measured(name, role, turns, **fields):
    return Measurement(system=System(name=name, title=name, module="", role=role,
                                     settings={"precision": "float32"}),
                       label=name, turns=turns, **fields)


def test_speeds_are_of_the_texts_bytes_and_tokens():
    def read(name, role, seconds, **fields):
        return measured(name, role, {"text": [
            {"seconds": value, "peak_bytes": 8e8, **fields} for value in seconds]})

    lines = table([
        read("ours", Role.OURS, [1.0, 2.0, 4.0], bytes=10**6, text_tokens=500_000),
        read("hf", Role.BASELINE, [8.0], text_tokens=500_001),
        read("mg", Role.BASELINE, [30.0], bytes=2 * 10**6)], text_bytes=2_000_000)
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    assert cells == [
        ["ours", "1.00 (0.50 to 2.00)", "4.00", "0.25", "2.00", "0.80"],
        ["hf", "0.25 (0.25 to 0.25)", "1.00", "0.06", "-", "0.80"],
        ["mg", "0.07 (0.07 to 0.07)", "0.27", "0.02", "4.00", "0.80"]]


def test_the_beginning_of_a_text_has_whole_documents(tmp_path):
    text, beginning = tmp_path / "text.txt", tmp_path / "beginning.txt"
    text.write_text("".join(f"{index:04d} words\nmore\n\n" for index in range(100)))
    write_beginning(str(text), 800, beginning)
    written = beginning.read_text()
    assert text.read_text().startswith(written.replace("\n\n\n", "\n\n"))
    assert 800 <= len(written) < 820 and written.endswith("more\n\n\n")


def test_texts_are_cut_to_exactly_so_many_tokens():
    # "films" has two pieces; [CLS] and [SEP] count.
    assert models.texts_of_length(SENTENCES, VOCABULARY, 6, 2) == ["a good film dull"] * 2
    assert models.texts_of_length(SENTENCES, VOCABULARY, 3, 5) == ["a", "good", "film", "dull", "a"]
    assert models.texts_of_length(SENTENCES, VOCABULARY, None, 4) == [*SENTENCES, "a good film"]
    with pytest.raises(UserError, match="give the --vocab_file that fits"):
        models.texts_of_length(["films films"], VOCABULARY, 5, 1)


def served(name, seconds, role=Role.BASELINE, shares=(0.2, 0.4)):
    """Two rounds over two texts; every call takes as long."""
    return measured(
        name, role, {"sst2/1": [{"calls": [seconds] * 2}] * 2,
                     "sst2/32": [{"calls": [seconds]}] * 2},
        warm_up=[{"case": "sst2", "probabilities": list(shares)}])


def test_ratios_are_to_the_fastest_baseline():
    page = serving.page([served("ours", 0.1, Role.OURS), served("hf", 0.2), served("best", 0.15)],
                        ["sst2"], 2)
    ours, hf = ([cell.strip() for cell in line.strip("|").split("|")]
                for line in page if line.startswith(("| ours", "| hf")))
    assert ours[1:] == ["100.00 (100.00 to 100.00)", "1.50"] * 2 + ["20 (20 to 20)", "1.50"]
    assert hf[2] == hf[4] == "0.75"


def test_systems_that_do_not_answer_the_same_are_refused():
    ours = served("ours", 0.1, Role.OURS)
    serving.require_agreement([ours, served("hf", 0.2, shares=(0.2, 0.4005))])
    with pytest.raises(UserError, match="hf and ours should return equal probabilities, .* 0.1"):
        serving.require_agreement([ours, served("hf", 0.2, shares=(0.2, 0.5))])


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
    assert seconds_to(points, goal) == (None if seconds is None else pytest.approx(seconds))


def test_seconds_are_those_of_the_training_intervals():
    assert points_of([
        {"kind": "train", "step": 10, "tokens_per_second": 100.0},
        {"kind": "eval", "step": 10, "discriminator_auc": 0.6},
        {"kind": "train", "step": 15, "tokens_per_second": 50.0},
        {"kind": "checkpoint", "step": 15},
        {"kind": "train", "step": 20, "tokens_per_second": 25.0},
        {"kind": "eval", "step": 20, "discriminator_auc": 0.7},
    ], tokens_per_step=20) == [(2.0, 0.6), (8.0, 0.7)]


def test_the_baseline_gets_our_examples_in_our_order(records, tmp_path):
    settings = override(PretrainingConfig(), {
        "training.train_batch_size": 4, "training.seed": 3, "runtime.eval_batch_size": 6})
    export(records, tmp_path, settings, pad_id=0, steps=5)
    ours = training_batches(
        load_records(records), pad_id=0, seed=3,
        buffer_examples=settings.data.shuffle_buffer,
        global_batch_size=4, first_step=0, last_step=5, input_context=tf.distribute.InputContext())
    np.testing.assert_array_equal(
        np.load(tmp_path / "train.npy"), [rows.ids for rows in ours.as_numpy_iterator()])
    with np.load(tmp_path / "held_out.npz") as held_out:
        assert held_out["ids"].shape[1:] == (6, tiny_records.LENGTH)
        assert held_out["valid"].any(axis=-1).sum() == tiny_records.HELD_OUT


@peers.needed
@pytest.mark.slow
def test_the_baselines_auc_is_that_of_scikit_learn():
    program = """if True:
        import numpy as np
        from benchmarks.time_to_quality.hugging_face import auc
        logits = np.random.default_rng(1).integers(0, 9, 500)
        print(auc(np.random.default_rng(2).random(500) < 0.1 * logits, logits))"""
    done = subprocess.run([str(peers.PYTHON), "-c", program], cwd=ROOT, capture_output=True,
                          text=True, check=True)
    logits = np.random.default_rng(1).integers(0, 9, 500)
    replaced = np.random.default_rng(2).random(500) < 0.1 * logits
    assert float(done.stdout) == pytest.approx(metrics.roc_auc_score(replaced, logits))


@pytest.mark.slow
def test_ours_and_the_baseline_run_and_write_table_numbers_and_picture(records, tmp_path):
    systems = "short,hf" if peers.PYTHON.exists() else "short"
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.time_to_quality", f"--data_dir={records}",
         f"--systems={systems}", "--num_train_steps=80", "--train_batch_size=4",
         f"--peers_python={peers.PYTHON}", f"--output_dir={tmp_path / 'out'}",
         *(f"--set=model.{name}" for name in (
             "hidden_size=32", "embedding_size=16", "intermediate_size=64", "num_layers=1"))],
        cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "out" / "time_to_quality.md").read_text()
    assert "failed" not in page
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    aucs = [float(row.split("|")[-2]) for row in rows[1:]]
    assert len(aucs) == len(systems.split(",")) and min(aucs) > 0.2
    assert (tmp_path / "out" / "time_to_quality.png").stat().st_size > 10_000
