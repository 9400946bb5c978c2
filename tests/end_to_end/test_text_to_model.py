"""Pre-training prints and leaves what the README says; its evaluation is repeated."""

import contextlib
import io
import json

import pytest

from electra_tf.reporting.metrics_log import read_metrics
from tests.end_to_end import commands

NAMES = ("generator_accuracy", "discriminator_accuracy", "discriminator_precision",
         "discriminator_recall", "discriminator_auc")


@pytest.fixture(scope="module")
def trained(records, tmp_path_factory):
    """The directory of a run with evaluations and samples, and what training printed."""
    model_dir = tmp_path_factory.mktemp("trained") / "model"
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        commands.pretrain(
            f"--data_dir={records}", f"--model_dir={model_dir}", *commands.ONE_LAYER,
            "--set=runtime.cpu_parts=1", "--num_train_steps=6", "--log_every_steps=2",
            "--sample_every_steps=3", "--eval_every_steps=4", "--eval_steps=1")
    return model_dir, printed.getvalue()


def test_training_prints_its_progress_and_leaves_what_it_promises(trained):
    model_dir, printed = trained
    lines = printed.splitlines()
    progress = [line for line in lines if line.startswith("step ")]
    assert progress[-1].split()[1] == "6/6"  # Others come if they are a second apart.
    assert {"loss", "generator", "discriminator", "lr", "tok/s", "ETA"} <= set(progress[-1].split())
    assert "evaluation at step 4: loss " in printed
    assert "\nevaluation at step 6 on 10 of 10 held-out examples\n  loss " in printed
    assert lines[-5].startswith("result   the discriminator detects ")
    assert "On random replacements the discriminator's AUC is " in lines[-5]
    assert lines[-1].endswith("--num_train_steps=12")
    for name in ("settings.json", "vocab.txt", "metrics.jsonl", "eval_results.json"):
        assert (model_dir / name).stat().st_size > 0
    assert (model_dir / "loss_curves.png").read_bytes().startswith(b"\x89PNG")
    assert list((model_dir / "tensorboard").glob("events.out.tfevents.*"))
    assert (model_dir / "checkpoints" / "ckpt-6.index").exists()
    records = read_metrics(model_dir / "metrics.jsonl")
    assert [(record["kind"], record["step"]) for record in records] == [
        ("train", 2), ("train", 4), ("eval", 4), ("train", 6), ("checkpoint", 6), ("eval", 6)]
    assert all(name in records[-1] for name in NAMES)


def test_evaluation_gives_the_same_numbers_again(trained, records, capsys):
    model_dir, _ = trained
    commands.pretrain(f"--data_dir={records}", f"--model_dir={model_dir}", "--mode=eval",
                      "--eval_steps=1")
    printed = capsys.readouterr().out
    assert "evaluation at step 6" in printed
    results = json.loads((model_dir / "eval_results.json").read_text())
    last = read_metrics(model_dir / "metrics.jsonl")[-1]
    assert all(name in printed and results[name] == pytest.approx(last[name]) for name in NAMES)
