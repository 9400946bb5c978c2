"""The README's commands, as a person types them, on a small text."""

import json
import pydoc_data.topics
import re

import pytest

from electra_tf.reporting.metrics_log import read_metrics
from tests.end_to_end import commands
from tests.support import tiny_run
from tests.support.python_process import run

NAMES = ("generator_accuracy", "discriminator_accuracy", "discriminator_precision",
         "discriminator_recall", "discriminator_auc")


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """Everything that the chain of commands leaves, and what training printed."""
    path = tmp_path_factory.mktemp("chain")
    topics = sorted(pydoc_data.topics.topics)[:30]
    (path / "corpus").mkdir()
    (path / "corpus" / "a.txt").write_text(
        "\n\n".join(pydoc_data.topics.topics[name] for name in topics))
    run("-m", "data_prep.build_vocab", f"--input={path}/corpus/*.txt",
        f"--output={path}/vocab.txt", "--vocab_size=500")
    run("-m", "data_prep.build_pretraining_data", f"--input={path}/corpus/*.txt",
        f"--vocab_file={path}/vocab.txt", f"--output_dir={path}/records",
        "--max_seq_length=32", "--held_out_fraction=0.1", "--num_workers=1")
    (path / "printed").write_text(run(
        "run_pretraining.py", f"--data_dir={path}/records", f"--model_dir={path}/model",
        "--model_size=tiny", *tiny_run.FLAGS, "--set=model.num_layers=1", "--num_train_steps=30",
        "--log_every_steps=10", "--sample_every_steps=15", "--eval_every_steps=20",
        "--eval_steps=3").stdout)
    return path


def test_training_prints_its_progress_and_leaves_what_it_promises(work):
    printed = (work / "printed").read_text()
    lines = printed.splitlines()
    progress = [line for line in lines if line.startswith("step ")]
    assert progress[-1].split()[1] == "30/30"  # Others come if they are a second apart.
    assert {"loss", "generator", "discriminator", "lr", "tok/s", "ETA"} <= set(progress[-1].split())
    assert "evaluation at step 20: loss " in printed
    # Python versions differ in their text, and so in the number of held-out examples.
    assert re.search(r"evaluation at step 30 on 96 of \d+ held-out examples\n  loss ", printed)
    assert lines[-5].startswith("result   the discriminator detects ")
    assert "healthy range for this budget, 0.0 million tokens: " in lines[-5]
    assert lines[-1].endswith("--num_train_steps=60")
    model = work / "model"
    for name in ("settings.json", "vocab.txt", "metrics.jsonl", "eval_results.json"):
        assert (model / name).stat().st_size > 0
    assert (model / "loss_curves.png").read_bytes().startswith(b"\x89PNG")
    assert list((model / "tensorboard").glob("events.out.tfevents.*"))
    assert (model / "checkpoints" / "ckpt-30.index").exists()
    records = read_metrics(model / "metrics.jsonl")
    assert [(record["kind"], record["step"]) for record in records] == [
        ("train", 10), ("train", 20), ("eval", 20), ("train", 30), ("checkpoint", 30),
        ("eval", 30)]
    assert all(name in records[-1] for name in NAMES)


def test_evaluation_gives_the_same_numbers_again(work, capsys):
    commands.pretrain(f"--data_dir={work}/records", f"--model_dir={work}/model", "--mode=eval",
                      "--eval_steps=3")
    printed = capsys.readouterr().out
    assert "evaluation at step 30" in printed
    results = json.loads((work / "model" / "eval_results.json").read_text())
    last = read_metrics(work / "model" / "metrics.jsonl")[-1]
    assert all(name in printed and results[name] == pytest.approx(last[name]) for name in NAMES)
