"""Command lines with hostile values: one line, and nothing is started by them."""

import contextlib

import hypothesis
import pytest
from absl import flags
from hypothesis import strategies as st

from electra_tf.core.errors import one_line
from electra_tf.finetuning import command as finetuning_command
from electra_tf.pretraining import command as pretraining_command
from tests.support import command_flags
from tests.support.attempts import REFUSED, attempt, cases, require_readable, tally
from tests.support.mutations import HOSTILE_TEXT

PROGRAMS = {"run_pretraining": pretraining_command, "run_finetuning": finetuning_command}
ABSENT = "nowhere/at/all"
VALUES = st.one_of(
    st.sampled_from([*HOSTILE_TEXT, ABSENT, "train", "eval", "predict", "export", "samples", "auto",
                     "classification", "cola", "glue,sst2", "squad", "tiny", "true", "1e9", "2.5"]),
    st.text(max_size=12), st.integers(-10, 10**12).map(str), st.floats().map(str))


@pytest.fixture(scope="module", params=sorted(PROGRAMS))
def program(request):
    command = PROGRAMS[request.param]
    before = set(flags.FLAGS)
    with command_flags.defined(command.define):
        yield request.param, command.main, sorted(set(flags.FLAGS) - before)


@hypothesis.given(data=st.data())
@cases(2)
def test_hostile_flags_are_one_line_and_start_nothing(program, tmp_path_factory, data):
    name, main, names = program
    chosen = data.draw(st.dictionaries(st.sampled_from(names), VALUES, max_size=6))
    paths = {flag: ABSENT for flag in ("data_dir", "model_dir", "init_checkpoint", "train", "dev")
             if flag in names}
    arguments = [f"--{flag}={value}" for flag, value in (paths | chosen).items()]
    home = tmp_path_factory.mktemp("flags")
    try:
        with contextlib.chdir(home):
            result = attempt(f"flags of {name}", lambda: command_flags.call(main, *arguments))
        assert result is REFUSED, arguments
    except flags.Error as error:
        require_readable(one_line(str(error)))
        tally[f"flags of {name}"]["refused by their type"] += 1
    assert list(home.rglob("*")) == []
