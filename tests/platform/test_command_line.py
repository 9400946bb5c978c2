"""How a command ends: a mistake is one line; Ctrl-C is in `test_signals`."""

import os
import pathlib
import subprocess
import sys
import types
from importlib import metadata

import pytest

from electra_tf.platform.command_line import pip_install


def command(body, parameters="", operand=""):
    """A program whose main function has this body."""
    return f"""
import atexit, os, signal, sys, time
from electra_tf.platform import command_line, errors
def main({parameters}):
    {body}
command_line.run(main, summary="", groups={{}}, operand="{operand}")
"""


def run(program, *arguments):
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True,
                          text=True, check=False, timeout=30)


@pytest.mark.parametrize(("body", "status", "line"), [
    ("raise errors.UserError('no file a.txt.')", 1, "error: no file a.txt."),
    ("raise ModuleNotFoundError(name='uvicorn')", 1,
     f"error: uvicorn is not installed: {pip_install('serving')}"),
    ("open('/nowhere/at/all')", 1,
     "error: cannot use '/nowhere/at/all': No such file or directory."),
    ("pass", 0, "")])
def test_an_end_is_one_line(body, status, line):
    done = run(command(body))
    assert (done.returncode, done.stderr.strip()) == (status, line)


NUMBERS = """
from absl import flags
flags.DEFINE_integer("port", 1, "")
flags.DEFINE_float("rate", 1.0, "")
"""


@pytest.mark.parametrize(("argument", "status"), [
    ("--port=٨", 2), ("--port=８", 2), ("--rate=٠.٥", 2), ("--port=8", 0), ("--rate=1e-3", 0)])
def test_numbers_of_flags_have_ascii_digits(argument, status):
    done = run(NUMBERS + command("pass"), argument)
    line = f"error: flag {argument}: numbers have the digits 0 to 9 (--help lists the flags.)"
    assert (done.returncode, done.stderr.strip()) == (status, line if status else "")


@pytest.mark.parametrize(("cause", "status", "words"), [
    ("while True: print('more', flush=True)", 141, ""),
    ("raise BrokenPipeError('of a worker')", 1, "of a worker")])
def test_only_a_closed_output_ends_the_command_quietly(
        cause, status, words):
    with subprocess.Popen(
            [sys.executable, "-c", command(f"print('first', flush=True)\n    {cause}")],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "first\n"
        if status == 141:
            process.stdout.close()
        error = process.stderr.read()
        assert (process.wait(), words in error, bool(error)) == (status, True, bool(words))


@pytest.mark.parametrize(("redirection", "status", "words"), [
    ("2>&-", 0, "done"), (">&- 2>&-", 0, ""),
    (">/dev/full", 1, "error: the output can't be written (No space left on device).")])
def test_a_command_ends_well_without_a_place_for_its_output(redirection, status, words, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(command(f"with open('{path}.out', 'w') as file:\n"
                            "        print('done', 'more' * 5000)\n        file.write('kept')"))
    done = subprocess.run(
        f"{sys.executable} {path} {redirection}", shell=True, capture_output=True, text=True,
        check=False, env={**os.environ, "PYTHONPATH": "."})
    assert done.returncode == status, done.stderr
    assert (done.stdout + done.stderr)[:len(words) or None].strip() == words
    if not status:
        assert (tmp_path / "program.py.out").read_text() == "kept"


def test_a_finished_command_ends_without_freeing_its_memory():
    done = run("import time\nclass Slow:\n    def __del__(self):\n        time.sleep(60)\n"
               "slow = Slow()\n" + command("atexit.register(print, 'tidied up'); print('done')"))
    assert (done.returncode, done.stdout.split("\n")[:2]) == (0, ["done", "tidied up"])


@pytest.mark.parametrize(("arguments", "status", "words"), [
    (["here"], 0, "main got here"), ([], 2, "error: DIR is missing"),
    (["here", "there"], 2, "error: unexpected argument 'there'"),
    (["--flag=1"], 2, "error: Unknown command line flag 'flag'")])
def test_an_operand_is_there_once(arguments, status, words):
    done = run(command("print(f'main got {name}')", "name", "DIR"), *arguments)
    assert done.returncode == status
    assert (done.stdout + done.stderr).startswith(words)
    assert (done.stdout + done.stderr).count("\n") == 1


def test_help_that_cannot_be_written_is_an_error():
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-c", command("pass"), "--help"], stdout=full,
                              stderr=subprocess.PIPE, text=True, check=False, timeout=30)
    assert done.returncode == 1
    assert done.stderr == "error: the output can't be written (No space left on device).\n"


def test_a_console_script_names_scripts_in_its_errors(tmp_path):
    (tmp_path / "electra-inspect").write_text(command(
        "raise errors.UserError('`python -m electra_tf.apps.tools.export_model --x`, "
        "run_finetuning.py and /a/run_pretraining.py')"))
    site = tmp_path / "electra_tf-1.dist-info"
    site.mkdir()
    (site / "METADATA").write_text("Name: electra-tf\nVersion: 1\n")
    (site / "entry_points.txt").write_text(
        "[console_scripts]\nelectra-export = electra_tf.apps.tools.export_model:run\n")
    done = subprocess.run([sys.executable, tmp_path / "electra-inspect"], capture_output=True,
                          text=True, check=False, timeout=30,
                          env={**os.environ, "PYTHONPATH": f"{os.getcwd()}:{tmp_path}"})
    assert done.stderr == ("error: `electra-export --x`, electra-finetune and "
                           "/a/run_pretraining.py\n")


def test_an_extra_is_installed_from_the_clone_that_runs(monkeypatch):
    monkeypatch.setattr(metadata, "distributions", lambda name: iter(()))
    assert pip_install("hub") == f"pip install '{pathlib.Path.cwd().resolve()}[hub]'"


def test_an_installed_package_names_the_requirements_of_an_extra(monkeypatch):
    """No package index has the package itself: its name could be registered by others."""
    package = types.SimpleNamespace(requires=[
        "numpy<3,>=2.1", "huggingface-hub<3,>=1; extra == 'hub'", "pyarrow>=18; extra == 'data'",
        'zstandard<1,>=0.23 ; extra == "data"', "tensorflow[and-cuda]<2.21; extra == 'cuda'"])
    monkeypatch.setattr(metadata, "distributions", lambda name: iter([package]))
    assert [pip_install(extra) for extra in ("hub", "data", "cuda")] == [
        "pip install 'huggingface-hub<3,>=1'", "pip install 'pyarrow>=18' 'zstandard<1,>=0.23'",
        "pip install 'tensorflow[and-cuda]<2.21'"]
