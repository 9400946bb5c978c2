"""What a sweep holds, and what the command refuses before anything runs."""

import pytest

from electra_tf.config.overrides import flatten
from electra_tf.core.errors import UserError
from experiments import run, sweep
from tests.support import command_flags

ABOUT = "sweep:\n  title: A\n  source: B\n  tasks: chunk\n"


def read(tmp_path, text: str):
    path = tmp_path / "own.yaml"
    path.write_text(text)
    return sweep.load(str(path))


def test_the_papers_comparisons_fit_every_budget():
    for name in sweep.names():
        chosen = sweep.load(name)
        assert len({variant.name for variant in chosen.variants}) == len(chosen.variants) > 1
        assert chosen.title and chosen.source and chosen.tasks
        for budget in sweep.BUDGETS.values():
            sweep.check(chosen, budget)
    assert {"objectives", "training", "tying", "generator_size", "masking_rate", "compute",
            "recipes", "mask_strategies"} <= set(sweep.names())
    with pytest.raises(UserError, match="there is no sweep 'all'; there are compute, generator_s"):
        sweep.load("all")


def test_a_variant_has_its_settings_over_those_of_all(tmp_path):
    first, second = read(tmp_path, ABOUT + (
        "all:\n  masking.rate: 0.4\n  objective.name: mlm\n"
        "one: {}\ntwo:\n  masking.rate: 0.2\n  recipe: paper\n  share: 0.5\n")).variants
    tiny = sweep.BUDGETS["tiny"]
    assert flatten(first.config(tiny))["masking.rate"] == 0.4
    assert flatten(second.config(tiny))["masking.rate"] == 0.2
    assert (second.recipe, second.share, first.share) == ("paper", 0.5, 1.0)
    assert first.config(tiny).objective.name == "mlm"
    assert first.config(tiny).optimizer.bias_correction  # The budget's recipe.
    assert not second.config(tiny).optimizer.bias_correction


def test_a_grid_is_every_combination_of_its_values(tmp_path):
    chosen = read(tmp_path, ABOUT + (
        "grid:\n  masking.rate: 0.1, 0.2\n  share: 1, 4\nA: {}\nB:\n  objective.name: mlm\n"))
    assert [variant.name for variant in chosen.variants] == [
        f"{name}, rate {rate}, share {share}" for name in "AB" for rate in ("0.1", "0.2")
        for share in ("1", "4")]
    assert chosen.variants[1].share == 4.0
    assert chosen.variants[1].settings == {"masking.rate": "0.1"}
    chosen = read(tmp_path, ABOUT + "grid:\n  masking.rate: 0.1, 0.2\n")
    assert [variant.name for variant in chosen.variants] == ["rate 0.1", "rate 0.2"]


@pytest.mark.parametrize(("text", "problem"), [
    (ABOUT, "no variants"),
    (ABOUT.replace("chunk", "chunk, sudoku") + "A: {}\n",
     "a task must be one of chunk.* Received: 'sudoku'"),
    (ABOUT + "  budget: tiny\nA: {}\n", "Received: 'title, source, tasks, budget'"),
    (ABOUT + "A:\n  masking: 0.2\n", "variant 'A' of own: unknown setting 'masking'"),
    (ABOUT + "A:\n  masking.rat: 0.2\n", "variant 'A' of own: unknown setting 'masking.rat'"),
    (ABOUT + "A:\n  objective.replacements: uniform\n", "variant 'A' of own: "
     "objective.replacements isn't a setting of this run: it belongs to objective.name=fixed_gen"),
    (ABOUT + "finetuning:\n  task.feature_base: true\nA: {}\n",
     "section finetuning of own: unknown setting 'task.feature"),
])
def test_what_is_no_sweep_is_refused(tmp_path, text, problem):
    with pytest.raises(UserError, match=problem):
        sweep.check(read(tmp_path, text), sweep.BUDGETS["tiny"])


@pytest.mark.parametrize(("arguments", "problem"), [
    (["--data_dir=/nowhere", "--tasks=chunk"], "/nowhere/manifest.json does not exist"),
    ([], "stsb needs .*/tasks/glue, which doesn't exist"),
    (["--tasks=chunk", "--output_dir=/proc/out"], "/proc/out"),
])
def test_what_cant_run_is_refused(tmp_path, records, arguments, problem):
    (tmp_path / "tasks" / "conll2000").mkdir(parents=True)
    with command_flags.defined(run.define), pytest.raises(UserError, match=problem):
        command_flags.call(lambda: run.main("tying"), f"--data_dir={records}",
                           f"--tasks_dir={tmp_path}/tasks", *arguments)
