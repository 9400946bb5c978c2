"""What a person sees who calls the command lines, rightly or wrongly."""

import pathlib
import signal
import subprocess
import sys
import time

import pytest

from data_prep import runner_flags
from data_prep.cleaning.settings import LINE_RULES, CleaningSettings
from data_prep.settings import BuildSettings
from electra_tf.platform.settings import settings_of
from tests.own_lines import own_lines

ROOT = pathlib.Path(__file__).parents[2]
SETTINGS = {"build_pretraining_data": [*settings_of(BuildSettings), *settings_of(CleaningSettings)],
            "build_vocab": LINE_RULES}
"""Settings that are flags of a command."""


def call(name, *arguments):
    return subprocess.run([sys.executable, "-m", f"data_prep.{name}", *map(str, arguments)],
                          cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture
def arguments(corpus, vocab_file, tmp_path):
    """Good arguments of build_pretraining_data, by flag."""
    return {"input": f"{corpus}/*.txt", "vocab_file": vocab_file, "output_dir": tmp_path / "out"}


@pytest.mark.parametrize("changes, message", [
    ({"input": "nothing-here*.txt"}, "--input: no file matches 'nothing-here*.txt'"),
    ({"vocab_file": "no.txt"}, "cannot read the vocabulary no.txt"),
    ({"vocab_file": ""}, "--vocab_file is missing"),
    ({"output_dir": "/proc/records"}, "cannot write /proc/records"),
    ({"max_seq_length": 4}, "--max_seq_length must be 5 or more and at most 65,536. Received: 4"),
    ({"packing": "tight"}, "--packing must be one of full, reference. Received: 'tight'"),
    ({"held_out_fraction": 0.9}, "--held_out_fraction must be in [0, 0.5]. Received: 0.9"),
    ({"short_example_rate": 0.1}, "--short_example_rate belongs to --packing=reference"),
    ({"max_seq_length": 10**30}, "--max_seq_length must be 5 or more and at most 65,536"),
    ({"seed": 10**30}, "--seed must be -9,223,372,036,854,775,808 or more and"),
    ({"shard_text_bytes": 10**12}, "--shard_text_bytes must be 1,000 or more"),
    ({"num_workers": 10**9}, "--num_workers must be at most 1000"),
    ({"num_workers": 0}, "--num_workers must be at least 1. Received: 0"),
    ({"runner": "DirectRunner", "num_workers": 2}, "--num_workers belongs to --runner=local"),
    ({"beam_options": "--direct_num_workers=2"}, "--beam_options belongs to Beam's runners"),
    ({"shard_text_bytes": 9}, "--shard_text_bytes must be 1,000 or more"),
    ({"languages": "en,english"}, "--languages: 'english' is no known language code; there are"),
    ({"near_duplicate_threshold": 0.9}, "--near_duplicate_threshold belongs to --drop_near_dupl"),
    ({"decontaminate": "nowhere"}, "--decontaminate=nowhere is no directory; name one of task"),
])
def test_a_mistake_is_one_line_that_names_it_and_writes_nothing(
        arguments, changes, message, tmp_path):
    flags = [f"--{name}={value}" for name, value in (arguments | changes).items()]
    done = call("build_pretraining_data", *flags)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {message}")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("flags, message", [
    (("--output=",), "--output is missing"),
    (("--vocab_size=50",), "--vocab_size must be in [100, 1000000]. Received: 50"),
    (("--input=nothing*",), "--input: no file matches 'nothing*'"),
])
def test_a_mistake_about_the_vocabulary_is_one_line(corpus, tmp_path, flags, message):
    done = call("build_vocab", f"--input={corpus}/*.txt", f"--output={tmp_path / 'v.txt'}", *flags)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith(f"error: {message}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_learning_in_one_line_and_writes_nothing(tmp_path, number, status):
    text = tmp_path / "text.txt"
    text.write_text("some words\n" * 400_000)
    process = subprocess.Popen(
        [sys.executable, "-m", "data_prep.build_vocab", f"--input={text}",
         f"--output={tmp_path / 'out' / 'v.txt'}", "--num_workers=1"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (tmp_path / "out").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == status
    assert own_lines(errors) == ["interrupted; no vocabulary was written."]
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("name", ["build_pretraining_data", "build_vocab"])
def test_help_shows_the_command_and_every_flag(name):
    done = call(name, "--help")
    assert done.returncode == 0
    assert f"python -m data_prep.{name} --input='corpus/*.txt'" in done.stdout
    source = "".join((ROOT / "data_prep" / file).read_text()
                     for file in (f"{name}.py", "text_flags.py"))
    defined = [line.split('"')[1] for line in source.splitlines()
               if line.startswith("flags.DEFINE")] + [*SETTINGS[name], *runner_flags.NAMES]
    assert len(defined) >= 7
    assert all(f"--{flag}=" in done.stdout or f"--[no]{flag}" in done.stdout for flag in defined)


def test_records_are_built_then_found_finished(arguments, tmp_path):
    flags = [f"--{name}={value}" for name, value in arguments.items()]
    built = call("build_pretraining_data", *flags, "--num_workers=1", "--held_out_fraction=0")
    assert built.returncode == 0, built.stderr
    assert "of which in the examples    100.00 %" in built.stdout
    assert "note: no document was held out" in built.stderr
    again = call("build_pretraining_data", *flags, "--held_out_fraction=0")
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout.endswith("nothing to do.\n")
