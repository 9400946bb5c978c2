"""How a command ends: a mistake is one line; Ctrl-C is in `test_signals`."""

import ast
import os
import pathlib
import subprocess
import sys
import types
from importlib import metadata

import pytest

from electra_tf.core.command_line import COMMANDS, pip_install

ROOT = pathlib.Path(__file__).resolve().parents[2]


def command(body, parameters="", operand=""):
    """A program whose main function has this body."""
    return f"""
import atexit, os, signal, sys, time
from electra_tf.core import command_line, errors
def main({parameters}):
    {body}
command_line.run(main, summary="", groups={{}}, operand="{operand}")
"""


def run(program, *arguments, **options):
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True,
                          text=True, check=False, timeout=30, **options)


@pytest.mark.parametrize(("body", "status", "line"), [
    ("raise errors.UserError('no file a.txt.')", 1, "error: no file a.txt."),
    ("raise ModuleNotFoundError(name='uvicorn')", 1,
     f"error: uvicorn is not installed: {pip_install('serving')}"),
    ("open('/nowhere/at/all')", 1,
     "error: cannot use '/nowhere/at/all': No such file or directory."),
    ("bytearray(2**60)", 1, "error: the memory is full (no size given); use less data."),
    ("raise MemoryError('Unable to allocate 8 GiB\\nfor x')", 1,
     "error: the memory is full (Unable to allocate 8 GiB for x); use less data."),
    ("pass", 0, "")])
def test_an_end_is_one_line(body, status, line):
    done = run(command(body))
    assert (done.returncode, done.stderr.strip()) == (status, line)


AGAIN = """
from absl import flags
flags.DEFINE_bool("restart", False, "")
flags.DEFINE_bool("overwrite", False, "")
flags.DEFINE_multi_string("text", [], "")
""" + command("print(repr((flags.FLAGS.restart, flags.FLAGS.overwrite, flags.FLAGS.text)),"
              " command_line.same_command(), sep='\\n')")


def continued(arguments, **options):
    """Flags of a program's command, and those of the command that it prints for its continuation.

    The shell gets the printed line as a user types it.
    """
    done = run(AGAIN, *arguments, **options)
    assert done.returncode == 0, done.stderr
    values, line = done.stdout.splitlines()
    typed = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    return ast.literal_eval(values), ast.literal_eval(typed.stdout.splitlines()[0])


@pytest.mark.parametrize("flags", [
    ["-restart"], ["--restart=1", "--overwrite"], ["--norestart", "--restart=t"],
    ["--flagfile", "a.flags"], ["-flagfile=b.flags"], ["--flagfile=/dev/stdin"]])
def test_the_command_that_continues_deletes_nothing(flags, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (tmp_path / "a.flags").write_text("# often\n\n--restart\n--text=in the file\n")
    (tmp_path / "b.flags").write_text("--flagfile=a.flags\n--flagfile=b.flags\n--overwrite\n")
    given, again = continued(["--text=first", *flags, "--text=last"],
                             input="--restart\n--text=from a pipe\n")
    assert True in given[:2] and again[:2] == (False, False)
    assert again[2] == given[2] and given[2][::len(given[2]) - 1] == ["first", "last"]


def test_a_printed_command_is_one_line_that_a_shell_reads_as_it_was_given():
    texts = ["two words", "it's", '"$HOME" `id` \\', "two\nlines", "\x1b[2J", "\udcff.tsv", "ä中 ",
             "\u202ex", "--restart x", "!!", "*"]
    given, again = continued([f"--text={text}" for text in texts])
    assert given == again and given[2] == texts


@pytest.mark.parametrize(("argument", "words"), [
    ("--flagfile=fifo", "fifo is a named pipe"), ("--flagfile=loop", "loop"),
    ("--flagfile=nowhere", "nowhere"), ("--flagfile", "no argument")])
def test_a_flag_file_that_cannot_be_read_is_one_line(argument, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    os.mkfifo("fifo")
    os.symlink("loop", "loop")
    done = run(AGAIN, argument)
    assert done.returncode in (1, 2) and done.stdout == ""
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    assert words in done.stderr


@pytest.mark.parametrize(("directory", "variable"), [(".", {}), ("/", {"PYTHONPATH": ""})])
def test_other_programs_are_found_from_where_this_one_runs(directory, variable):
    script = ROOT / "run_pretraining.py"
    ask = ("import os, sys; sys.path[0] = os.path.dirname(sys.argv[1]); "
           "sys.orig_argv = [sys.executable, *sys.argv[1:]]; sys.argv = sys.argv[1:]; "
           "from electra_tf.core.command_line import *; "
           "print(command('finetune'), command('curves') + ' --version', sep='\\n')")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", ask, script], capture_output=True, text=True,
                          check=True, env=environment, cwd=ROOT if directory == "." else directory)
    program, module = done.stdout.splitlines()
    assert program.split()[1] == ("run_finetuning.py" if directory == "." else
                                  str(ROOT / "run_finetuning.py"))
    subprocess.run(["bash", "-c", module], check=True, env={**os.environ, **variable},
                   cwd=ROOT if directory == "." else directory)


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
    (["here", "there"], 2, "error: unexpected argument 'there'")])
def test_an_operand_is_there_once(arguments, status, words):
    done = run(command("print(f'main got {name}')", "name", "DIR"), *arguments)
    assert done.returncode == status
    assert (done.stdout + done.stderr).startswith(words)
    assert (done.stdout + done.stderr).count("\n") == 1


def test_a_name_that_is_not_utf_8_can_be_printed():
    done = run(command(r"print('ä\udcff')"), env={**os.environ, "PYTHONIOENCODING": "utf-8:strict"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "ä\\udcff\n", "")


@pytest.fixture
def electra(tmp_path):
    """Runs the console script as pip writes it; returns status, output and errors."""
    script = tmp_path / "bin" / "electra"
    script.parent.mkdir()
    script.write_text(f"#!{sys.executable}\nfrom electra_tf.__main__ import run\nrun()\n")
    script.chmod(0o755)
    environment = {**os.environ, "PYTHONPATH": str(ROOT),
                   "PATH": f"{script.parent}:{os.environ['PATH']}"}

    def run_electra(line):
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False,
                              timeout=60, env=environment, cwd=tmp_path)
        return done.returncode, done.stdout, done.stderr
    return run_electra


def test_electra_lists_its_commands_without_tensorflow(electra):
    status, listed, errors = electra("electra")
    assert (status, errors) == (0, "") and electra("electra --help")[1] == listed
    assert listed.count("\n  ") - 2 == len(COMMANDS) and "\n    electra COMMAND" in listed
    for name in COMMANDS:
        assert f"\n  {name} " in listed
    loaded = electra("python -X importtime -m electra_tf --help")[2]
    assert "electra_tf" in loaded and "tensorflow" not in loaded


@pytest.mark.parametrize(("line", "status", "words"), [
    ("electra --version", 0, "electra-tf 0."), ("electra curves --version", 0, "electra-tf 0."),
    ("electra finetun --task=x", 2, "unknown command 'finetun'. Did you mean 'finetune'?"),
    ("electra curves --modeldir=x", 2, "Unknown command line flag 'modeldir'. Did you mean"),
    ("electra finetune", 1, "For example: electra finetune --task="),
    ("electra finetune --help", 0, "\n    electra finetune --task="),
    ("electra pretrain --help", 0, "--mode=train|eval|samples\n"),
    ("electra pretrain --helpfull | head -1", 0, "Pre-trains ELECTRA")])
def test_electra_runs_a_command(electra, line, status, words):
    code, output, errors = electra(line)
    assert code == status and words in output + errors
    assert not status or (output + errors).count("\n") == 1


@pytest.mark.parametrize(("name", "rare"), [
    ("finetune", "doc_stride"), ("records", "packing")])
def test_the_short_help_leaves_out_rare_flags_and_says_so(electra, name, rare):
    short, full = (electra(f"electra {name} --{form}")[1] for form in ("help", "helpfull"))
    count, full_count = (text.count("\n  --") for text in (short, full))
    assert f"--{rare}" in full and f"--{rare}" not in short and 5 < count < 25
    assert short.endswith(f"--helpfull lists {full_count - count} more flags.\n")


def test_an_installed_package_names_the_requirements_of_an_extra(monkeypatch):
    """No package index has the package itself: its name could be registered by others."""
    package = types.SimpleNamespace(requires=[
        "numpy<3,>=2.1", "huggingface-hub<3,>=1; extra == 'hub'", "pyarrow>=18; extra == 'data'",
        'zstandard<1,>=0.23 ; extra == "data"', "tensorflow[and-cuda]<2.21; extra == 'cuda'"])
    monkeypatch.setattr(metadata, "distributions", lambda name: iter([package]))
    assert [pip_install(extra) for extra in ("hub", "data", "cuda")] == [
        "pip install 'huggingface-hub<3,>=1'", "pip install 'pyarrow>=18' 'zstandard<1,>=0.23'",
        "pip install 'tensorflow[and-cuda]<2.21'"]
