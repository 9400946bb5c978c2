"""What the tool prints of a run, the user's runs in the picture, and mistakes in one line."""

import csv
import re

import pytest

from electra_tf.apps.planning import estimate_cost
from electra_tf.platform.errors import UserError
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
    # Table 1: four days of one V100.
    assert row(output, "1 x v100")[3:7] == ["15.7", "0.212", "4.0", "days"]
    assert row(output, "ELECTRA-Base")[1:] == ["6.4e19", "49.5", "85.1"]


def test_a_masked_language_model_has_one_network(printed):
    output = printed("--set=objective.name=mlm", "--num_train_steps=1450000")
    assert row(output, "training, whole run")[-2] == "1.42e18" and "generator" not in output


def test_devices_count_and_utilization_are_the_users(printed):
    output = printed("--model_size=base", "--devices=A100,tpu-v3", "--count=8",
                     "--utilization=0.5")
    # 6.71e19 products over 8 x 156e12 a second: 14.9 hours; 119.5 device hours at $4.10.
    assert row(output, "8 x a100")[3:] == ["312", "0.5", "14.9", "h", "119", "490"]
    assert row(output, "8 x tpu v3")


def test_every_device_has_a_peak_and_a_dated_price(printed):
    output = printed(f"--devices={','.join(estimate_cost.DEVICES)}")
    for name, device in estimate_cost.DEVICES.items():
        assert float(row(output, f"1 x {name}")[2 + len(name.split())]) > 1
        assert re.search(r"\b20[12]\d\b", device.price)


@pytest.mark.parametrize(("arguments", "words"), [
    (["--devices=abacus"], "--devices: no device 'abacus'; known: t4, l4, v100"),
    (["--count=-1"], "--count must be from 1 to 1,000,000. Received: -1"),
    (["--utilization=nan"], r"--utilization must be in \(0, 1\]"),
    (["--max_seq_length=1024"], "--max_seq_length=1024 is more than the model's 512 positions"),
    (["--set=objective.name=frozen_generator"], "--set objective.generator=DIRECTORY"),
])
def test_mistakes_are_one_line(printed, arguments, words):
    with pytest.raises(UserError, match=words) as error:
        printed(*arguments)
    assert "\n" not in str(error.value)


def test_rows_of_the_literature_agree_with_themselves():
    """Averages are those of their tasks to the digit that is printed; every row has a source."""
    rows = list(csv.DictReader(estimate_cost.LITERATURE.open(encoding="utf-8")))
    averaged = 0
    for each in rows:
        assert each["source"]
        tasks = [each[name] for name in GLUE_TASKS]
        if all(tasks):
            averaged += 1
            mean = sum(map(float, tasks)) / len(tasks)
            assert float(each["glue_dev"]) == pytest.approx(mean, abs=0.0501)
    assert averaged == 8
