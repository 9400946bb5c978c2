"""What the planner proposes, by a machine whose rates are made up."""

import pytest

from electra_tf.apps.planning import plan, throughput
from electra_tf.apps.planning.learning_curves import Network
from electra_tf.platform.errors import UserError
from tests import command_flags, tiny_records

QUICK = Network(name="quick", flags=("--model_size=tiny",), limit=0.85,
                measured=((1e6, 0.70), (1e7, 0.80)))
SLOW = Network(name="slow", flags=("--model_size=small",), limit=0.97,
               measured=((1e6, 0.60), (1e7, 0.84)))
RATES = {"--model_size=tiny": 10_000.0, "--model_size=small": 1_000.0}


@pytest.fixture(autouse=True)
def program_flags():
    with command_flags.defined(plan.define):
        yield


@pytest.fixture
def records(tmp_path):
    tiny_records.write(tmp_path / "records")
    return tmp_path / "records"


@pytest.fixture
def machine(monkeypatch):
    """Two networks, the second ten times slower."""
    monkeypatch.setattr(plan, "NETWORKS", (QUICK, SLOW))
    monkeypatch.setattr(
        throughput, "tokens_per_second",
        lambda given: next(RATES[flag] for flag in given if flag in RATES))


@pytest.mark.parametrize("text", ["", "2", "-2h", "30m1h", "59s", "1e3h", "9" * 5000 + "h"])
def test_another_time_is_one_line(text):
    with pytest.raises(UserError, match="--budget must be a time of a minute or more"):
        plan.seconds_of(text)


@pytest.mark.parametrize(("seconds", "rate", "evaluations", "batches"), [
    (60, 1_000, 1, 1), (300, 20_000, 20, 6), (7200, 20_000, 20, 100)])
def test_evaluations_take_a_tenth_of_the_time_at_most(seconds, rate, evaluations, batches):
    proposed = plan.plan(QUICK, rate, seconds, length=128)
    ends = {*range(proposed.eval_every_steps, proposed.steps, proposed.eval_every_steps),
            proposed.steps}
    assert (len(ends), proposed.eval_batches) == (evaluations, batches)
    spent = (proposed.tokens + len(ends) * batches * 32 * 128) / rate
    assert 0.9 * (seconds - 40) < spent < 0.95 * (seconds - 40) + 0.01


def test_the_papers_recipe_begins_where_the_papers_tokens_fit():
    a_day = plan.plan(QUICK, 10_000.0, 86_400.0, length=128)
    a_month = plan.plan(QUICK, 10_000.0, 30 * 86_400.0, length=128)
    assert (a_day.recipe, a_month.recipe) == ("short", "paper")


def test_little_time_is_for_the_quick_network_and_much_for_the_other(machine, records, capsys):
    proposed, marked = [], []
    for budget in ("10m", "10h"):
        command_flags.call(plan.main, f"--budget={budget}", f"--data_dir={records}")
        lines = capsys.readouterr().out.splitlines()
        proposed += [line.split()[0] for line in lines if line.endswith("<- proposed")]
        marked.append([line.split()[0] for line in lines
                       if line.strip().startswith(("quick", "slow")) and "*" in line])
    assert proposed == ["quick", "slow"]
    assert marked == [[], ["quick", "slow"]]  # At most 5.4 million tokens; 10 were measured.


def test_run_becomes_the_command_that_was_printed(machine, records, capsys, monkeypatch):
    started = []
    monkeypatch.setattr(plan.os, "execv", lambda program, words: started.append(words))
    command_flags.call(plan.main, "--budget=10m", f"--data_dir={records}", "--model_dir=a run",
                       "--run")
    printed = capsys.readouterr().out.splitlines()[-1]
    assert tuple(started[0][:3]) == throughput.PRETRAIN
    assert "'--model_dir=a run'" in printed and "--recipe=short" in printed
    assert f"--num_train_steps={plan.plan(QUICK, 10_000.0, 600.0, length=32).steps} " in printed
    assert printed.split()[2].removeprefix("--data_dir=") == str(records) == (
        started[0][3].removeprefix("--data_dir="))


@pytest.mark.parametrize(("arguments", "words"), [
    ([], "--budget is needed"), (["--budget=2h"], "--data_dir is needed"),
    (["--budget=2h", "--data_dir=nowhere", "--run"], "--model_dir is needed"),
    (["--budget=2h", "--data_dir=nowhere"], "nowhere")])
def test_mistakes_are_one_line(machine, arguments, words):
    with pytest.raises(UserError, match=words):
        command_flags.call(plan.main, *arguments)


@pytest.mark.slow
def test_a_rate_is_measured_by_a_real_run(records):
    flags = [f"--data_dir={records}", "--model_size=tiny", "--train_batch_size=4"]
    assert throughput.tokens_per_second(flags) > 0
    with pytest.raises(UserError, match="run_pretraining.py: .*--train_batch_size"):
        throughput.tokens_per_second([*flags, "--train_batch_size=-1"])
