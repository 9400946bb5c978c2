"""A sweep with the real programs, on records and a task of made-up words."""

import dataclasses

import pytest

from experiments import run, sweep
from tests import command_flags, tiny_records, tiny_run

pytestmark = pytest.mark.slow
TINIEST = dataclasses.replace(
    sweep.budget_of("tiny"), reference_steps=4, seeds=1, settings={
        name: str(value) for name, value in tiny_run.SETTINGS.items()
        if name != "training.num_train_steps"})
SWEEP = """
sweep:
  title: Three objectives
  source: made up
  tasks: cola
finetuning:
  training.num_train_epochs: 1
  task.max_seq_length: 16
ELECTRA: {}
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setitem(sweep.BUDGETS, "tiny", TINIEST)
    tiny_records.write(tmp_path / "records")
    folder = tmp_path / "tasks" / "glue" / "CoLA"
    folder.mkdir(parents=True)
    for split in ("train", "dev"):
        (folder / f"{split}.tsv").write_text("".join(
            f"x\t{number % 2}\t\tword{number} word{number + 1}\n" for number in range(30)))
    (tmp_path / "own.yaml").write_text(SWEEP + "".join(
        f"{name}:\n  objective.name: {name}\n" for name in ("all_tokens_mlm", "two_stage")))
    return tmp_path


def test_every_variant_is_trained_and_judged(place, capsys):
    with command_flags.defined(run.define):
        def whole():
            run.main(str(place / "own.yaml"))

        arguments = [f"--data_dir={place / 'records'}", f"--tasks_dir={place / 'tasks'}",
                     f"--output_dir={place / 'out'}", f"--results={place / 'results.sqlite'}"]
        command_flags.call(whole, *arguments)
        first = capsys.readouterr().out
        assert "failed" not in first
        lines = [line for line in first.splitlines() if line.startswith("| ")][1:]
        assert len(lines) == 3 and all(line.endswith("| 1 |") for line in lines)
        command_flags.call(whole, *arguments)
        assert "3 runs, 3 of them done" in capsys.readouterr().out
        # Another sweep with the same run finds it finished on disk.
        (place / "own.yaml").write_text(SWEEP)
        command_flags.call(whole, *arguments[:-1], f"--results={place / 'other.sqlite'}")
        assert lines[0].split("|")[4] in capsys.readouterr().out
