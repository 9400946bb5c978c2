from pathlib import Path

import pytest

from electra_tf.data import manifest
from electra_tf.platform import storage
from experiments import budgets, jobs, sweep
from tests import tiny_records

TINY = budgets.budget_of("tiny")


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    path = tmp_path_factory.mktemp("jobs") / "records"
    tiny_records.write(path)
    return manifest.load(storage.path(path))


def plan(name, records, seeds=1):
    return jobs.plan(sweep.load(name), TINY, records, Path("out"), seeds)


def test_every_variant_gets_the_same_compute(records):
    for name in ("objectives", "training", "tying", "generator_size", "masking_rate", "generators"):
        planned = plan(name, records)
        reference = jobs.flops_of_a_step(planned[0].config) * planned[0].steps
        for job in planned:
            assert job.flops == pytest.approx(reference, rel=2e-3)  # Whole steps.
            assert job.flops == job.steps * jobs.flops_of_a_step(job.config)


def test_electra_itself_gets_the_budgets_steps(records):
    job = plan("objectives", records)[0]
    assert job.variant.name == "ELECTRA" and job.steps == TINY.reference_steps
    assert job.tokens == 2000 * 16 * 32
    # What costs more per token reads fewer.
    steps = {job.variant.name: job.steps for job in plan("objectives", records)}
    assert steps["All-Tokens MLM"] < steps["Replace MLM"] < steps["BERT"]
    assert steps["ELECTRA 15 %"] == steps["ELECTRA"]


def test_a_share_is_of_the_compute(records):
    flops = [job.flops for job in plan("compute", records) if job.variant.of == "BERT"]
    assert flops == pytest.approx([flops[1] / 4, flops[1], flops[1] * 4], rel=2e-3)


def test_all_variants_of_a_seed_come_before_the_next(records):
    planned = plan("tying", records, seeds=3)
    assert [job.seed for job in planned] == [1] * 5 + [2] * 5 + [3] * 5
    assert len({job.directory for job in planned}) == 15
    assert len({job.settings for job in planned}) == 15


def test_the_same_run_has_one_directory_in_all_sweeps(records):
    electra, joint = plan("objectives", records)[0], plan("training", records)[0]
    assert electra.variant.name != joint.variant.name
    assert (electra.directory, electra.settings) == (joint.directory, joint.settings)


def test_the_command_says_what_the_plan_says(records):
    job = plan("objectives", records, seeds=2)[-1]
    flags = job.pretraining_flags(Path("records"), TINY)
    assert job.variant.name == "BERT" and "--set=objective.name=mlm" in flags
    assert {"--model_size=tiny", "--recipe=short", "--set=training.seed=2",
            f"--set=training.num_train_steps={job.steps}"} <= set(flags)
