"""What the tool prints of a run, the user's runs in the picture, and mistakes in one line."""

import csv
import json

import pytest

from electra_tf.apps.planning import estimate_cost, scores
from electra_tf.config.overrides import flatten
from electra_tf.config.pretraining import SIZES
from electra_tf.finetuning.results import Epoch, Results, Trial
from electra_tf.platform.errors import UserError
from electra_tf.reporting import scores as pictures
from electra_tf.text.tokenization import Normalization
from tests import command_flags

GLUE_TASKS = ("cola", "sst2", "mrpc", "stsb", "qqp", "mnli", "qnli", "rte")


@pytest.fixture(autouse=True)
def program_flags():
    with command_flags.defined(estimate_cost.define):
        yield


@pytest.fixture
def printed(capsys):
    def call(*arguments):
        command_flags.call(estimate_cost.main, *arguments)
        return capsys.readouterr().out
    return call


def row(output, beginning):
    return next(line for line in output.splitlines() if line.strip().startswith(beginning)).split()


def test_small_is_the_papers(printed):
    output = printed("--model_size=small")
    assert row(output, "training, whole run")[-2:] == ["1.29e18", "1.15e18"]
    assert row(output, "inference, 128")[-2] == "3.68e09"
    assert "discriminator 13,549,057" in output
    assert row(output, "part of the published ELECTRA-Small")[5:9] == [
        "100", "%", "of", "1.29e18,"]
    # Table 1: four days of one V100.
    assert row(output, "1 x v100")[3:7] == ["15.7", "0.212", "4.0", "days"]
    assert row(output, "ELECTRA-Base")[1:] == ["6.4e19", "49.5", "85.1"]


def test_a_masked_language_model_has_one_network(printed):
    output = printed("--set=objective.name=mlm", "--num_train_steps=1450000")
    assert row(output, "training, whole run")[-2] == "1.42e18" and "generator" not in output


def test_devices_count_utilization_and_region_are_the_users(printed):
    output = printed("--model_size=base", "--devices=A100,tpu-v3", "--count=8",
                     "--utilization=0.5", "--region=France")
    # 6.71e19 products over 8 x 156e12 a second: 14.9 hours.
    assert row(output, "8 x a100")[3:7] == ["312", "0.5", "14.9", "h"]
    assert row(output, "8 x tpu v3") and "56 g CO2/kWh" in output and "0.5: --utilization" in output


def test_a_price_file_replaces_a_device(printed, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("device a100:\n  utilization: 0.5\n  utilization_source: measured by us\n"
                    "  utilization_date: 2026\n")
    output = printed("--devices=a100", f"--prices={path}")
    assert row(output, "1 x a100")[-3:] == ["-", "-", "-"] and "measured by us (2026)" in output


@pytest.mark.parametrize(("arguments", "words"), [
    (["--devices=abacus"], "--devices: no device 'abacus'; known: t4, l4, v100"),
    (["--count=-1"], "--count must be from 1 to 1,000,000. Received: -1"),
    (["--utilization=nan"], r"--utilization must be in \(0, 1\]"),
    (["--num_train_steps=0"], "--num_train_steps .* greater than 0 .*Received: 0"),
    (["--max_seq_length=1024"], "--max_seq_length=1024 is more than the model's 512 positions"),
    (["--set=objective.name=frozen_generator"], "--set objective.generator=DIRECTORY"),
    (["--region=moon"], "--region: no grid 'moon'; known: world, eu"),
    (["--prices=nowhere.yaml"], "nowhere.yaml can't be read"),
    (["--own=mine:1e17:nan"], "--own must be name:FLOPs:score"),
    (["--plot=nowhere/x.png"], "cannot write nowhere/x.png"),
])
def test_mistakes_are_one_line(printed, arguments, words):
    with pytest.raises(UserError, match=words) as error:
        printed(*arguments)
    assert "\n" not in str(error.value)


@pytest.fixture
def pretrained(tmp_path):
    """Writes settings.json of a pre-training run and returns how results name its encoder."""
    def write(name="first", steps=1000, initial=None, **changes):
        saved = {key: value for key, value in flatten(SIZES["small"]).items()
                 if not key.startswith("runtime.")} | {
            "data.max_seq_length": 128, "initial": initial, "dataset": "", "vocabulary": ""}
        saved |= Normalization().facts() | changes
        (tmp_path / name).mkdir()
        (tmp_path / name / "settings.json").write_text(json.dumps(saved))
        return f"{tmp_path / name}, step {steps:,}"
    return write


@pytest.fixture
def finetuned(tmp_path):
    """Writes results of GLUE's tasks, each with 60 per cent, and returns their directory."""
    def write(initial, tasks=GLUE_TASKS):
        for task in tasks:
            metric = {"cola": "mcc", "stsb": "spearman"}.get(task, "accuracy")
            epoch = Epoch(epoch=1, step=1, loss=0.5, scores={"dev": {metric: 0.6}})
            (tmp_path / "glue" / task).mkdir(parents=True)
            Results(task=task, metrics=(metric,), initial=initial, trials=(Trial(
                seed=1, losses=(), epochs=(epoch,), kept_epoch=1, seconds=1.0,
                examples_per_second=1.0),)).save(tmp_path / "glue" / task)
        return tmp_path / "glue"
    return write


PER_STEP = 1.293743798272e18 / 1e6
"""FLOPs of ELECTRA-Small, by Google's count."""


def test_a_run_that_began_with_another_costs_both(pretrained, finetuned):
    second = pretrained("second", steps=500, initial=pretrained(steps=1000))
    point = scores.of_glue(finetuned(second))
    assert point.flops == pytest.approx(1500 * PER_STEP, rel=1e-12)
    assert (point.name, point.kind, point.score) == ("glue", pictures.OWN, pytest.approx(60.0))


@pytest.mark.parametrize(("initial", "tasks", "words"), [
    ("google/electra-small", GLUE_TASKS, "is not an existing pre-training run.* --own="),
    (None, GLUE_TASKS[:4], "no results of qqp, mnli, qnli, rte, which count")])
def test_results_without_a_known_cost_are_one_line(pretrained, finetuned, initial, tasks, words):
    with pytest.raises(UserError, match=words):
        scores.of_glue(finetuned(initial or pretrained(), tasks))


def test_the_users_runs_are_in_the_picture(printed, tmp_path, monkeypatch, pretrained, finetuned):
    drawn = []
    monkeypatch.setattr(estimate_cost, "draw_scores",
                        lambda points, path, label: drawn.append((points, str(path))))
    output = printed(f"--plot={tmp_path}/x.png", "--own=by: hand:1.5e17:71.2",
                     f"--glue_dir={finetuned(pretrained())}")
    assert "your run by: hand: 1.50e17 FLOPs, GLUE 71.2" in output and "wrote" in output
    (points, path), = drawn
    assert path == f"{tmp_path}/x.png"
    assert [point.name for point in points if point.kind == pictures.OWN] == ["by: hand", "glue"]
    assert {"ELMo", "BERT-Base", "ELECTRA-Small", "XLNet"} <= {point.name for point in points}


def test_rows_of_the_literature_agree_with_themselves():
    """Averages are those of their tasks to the digit that is printed; every row has a source."""
    rows = list(csv.DictReader(scores.LITERATURE.open(encoding="utf-8")))
    averaged = 0
    for each in rows:
        assert each["source"] and each["kind"] in pictures.KINDS
        tasks = [each[name] for name in GLUE_TASKS]
        if all(tasks):
            averaged += 1
            mean = sum(map(float, tasks)) / len(tasks)
            assert float(each["glue_dev"]) == pytest.approx(mean, abs=0.0501)
    assert averaged == 8
