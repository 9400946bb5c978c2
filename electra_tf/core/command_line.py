"""The command line of every program: its exit status, its errors and a grouped `--help`."""

import atexit
import faulthandler
import functools
import gc
import os
import pathlib
import re
import shlex
import signal
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import metadata
from typing import Any, NoReturn, TextIO

from absl import flags, logging

from electra_tf.core import native_libraries, signals, storage
from electra_tf.core.errors import Abandoned, UserError, one_line, shown
from electra_tf.core.setting_flags import display_value

EXTRAS = {
    "apache_beam": "data", "datasketch": "data", "mwparserfromhell": "data", "pyarrow": "data",
    "zstandard": "data", "ai_edge_litert": "serving", "starlette": "serving", "uvicorn": "serving",
    "onnx": "onnx", "onnxruntime": "onnx", "tokenizers": "onnx",
    "tensorflow_datasets": "tfds", "huggingface_hub": "hub", "official": "model-garden",
    "wandb": "wandb", "mlflow": "mlflow",
}
"""Module -> optional packages of electra-tf in pyproject.toml that provide it."""


_arguments: list[str] = []
"""The arguments of this process, with the lines of a file of flags in its place."""
Groups = Mapping[str, Iterable[str]]
"""Title in `--help` -> names of the flags below it."""


def run(main: Callable[..., None], define: Callable[[], None] = lambda: None, *, summary: str,
        groups: Groups | None = None, operand: str = "") -> None:
    """Runs a program: defines and parses absl flags, calls `main`, and ends the process.

    Exits with 0 after success, 1 after a `UserError`, 2 after a wrong flag, 130 after Ctrl-C, 143
    after SIGTERM, 141 if the reader of its output ends. Errors and interruptions are one line.

    `main` takes the operands and reads `flags.FLAGS`; `operand` names them, such as "FROM TO".
    `--help` prints `summary`, then the flags of `groups` under their titles; by default those that
    `define` defines.
    """
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:  # After `>&-` another file would get its number.
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
            setattr(sys, name, open(number, "w", encoding="utf-8", closefd=False))
    sys.stdout, sys.stderr = _Output(sys.stdout), _Output(sys.stderr)
    faulthandler.enable()
    # At Python's 700 a seventh of the time to import TensorFlow and trace a step is collecting.
    gc.set_threshold(50_000)
    native_libraries.configure()
    logging.use_absl_handler()
    logging.set_verbosity(logging.WARNING)
    shared_flags = set(flags.FLAGS)
    define()
    if any(argument in ("--help", "-help", "-h") for argument in sys.argv[1:]):
        own_flags = [name for name in flags.FLAGS if name not in shared_flags]
        print(_grouped_help(summary, {"Flags": own_flags} if groups is None else groups))
        _end(0)
    try:
        with signals.Interrupts():
            main(*_parse(operand.split()))
    except signals.Interrupted as interrupted:
        if str(interrupted):
            print(interrupted, file=sys.stderr)
        _end(128 + interrupted.number)  # As a shell reports signals.
    except (UserError, OSError, ModuleNotFoundError, MemoryError) as error:
        if not (line := _line(error)):
            raise
        print(f"error: {line}", file=sys.stderr)
        if isinstance(error, Abandoned):
            _end(1)
        raise SystemExit(1) from None
    if "TF_CONFIG" not in os.environ:  # Several workers end together.
        atexit._run_exitfuncs()
        _end(0)


def _parse(names: Sequence[str]) -> list[str]:
    """Parses the flags of this process and returns its operands, one for each of some names."""
    for flag in map(flags.FLAGS.__getitem__, flags.FLAGS):
        if isinstance(flag.parser, flags.IntegerParser | flags.FloatParser):
            flag.parser.convert = functools.partial(_convert_ascii, flag.parser.convert)
    try:
        for name in re.findall(r"^--?flagfile[=\n](.*)", "\n".join(sys.argv[1:]), re.MULTILINE):
            path = pathlib.Path(os.path.realpath(os.path.expanduser(name)))
            if path.exists() and str(path) != os.devnull:  # The pipe of `<(...)` has no path.
                storage.open_regular(path).close()
        _arguments[:] = flags.FLAGS.read_flags_from_files(sys.argv[1:], force_gnu=False)
        _, *operands = flags.FLAGS([sys.argv[0], *_arguments])
    except (flags.Error, ValueError) as error:
        missing = re.findall(r"flag --(\w+)=None: Flag --\1 must have", str(error))
        _refuse(" ".join(f"--{name} is needed: {flags.FLAGS[name].help}" for name in missing)
                or f"{error} (--help lists the flags.)")
    if len(operands) > len(names):
        _refuse(f"unexpected argument {shown(operands[-1])}; settings are written --name=value.")
    if len(operands) < len(names):
        _refuse(f"{names[len(operands)]} is missing (--help describes it).")
    return operands


def _convert_ascii(convert: Callable[[Any], Any], argument: Any) -> Any:
    """Converts a number, but not one with digits of other scripts, as in `--port=٨`."""
    if not str(argument).isascii():
        raise ValueError("numbers have the digits 0 to 9")
    return convert(argument)


def _line(error: Exception) -> str:
    """Returns the line to print for an error that the user can fix; "" for others."""
    if isinstance(error, UserError):
        return as_started(str(error))
    if isinstance(error, MemoryError):
        return f"the memory is full ({one_line(str(error)) or 'no size given'}); use less data."
    if isinstance(error, OSError) and error.filename is not None:
        return f"cannot use {shown(str(error.filename))}: {one_line(error.strerror)}."
    module = (getattr(error, "name", None) or "").partition(".")[0]
    if module in EXTRAS:
        return f"{module} is not installed: {pip_install(EXTRAS[module])}"
    return ""


def pip_install(extra: str) -> str:
    """Returns the command that installs optional packages; a clone is installed from its folder.

    For an installed package it names their requirements: no package index has the package itself.
    """
    package = next(iter(metadata.distributions(name="electra-tf")), None)
    requirements = [line.partition(";")[0].strip() for line in package and package.requires or ()
                    if re.search(f"extra == .{extra}.$", line)]
    clone = pathlib.Path(__file__).resolve().parents[2]
    return f"pip install {shlex.join(requirements or [f'{clone}[{extra}]'])}"


class _Output:
    """An output that ends the program after its reader ended; `_end` reports a full disk."""

    def __init__(self, stream: TextIO):
        self._stream = stream
        if stream.errors == "strict":  # Names of files need not be UTF-8.
            stream.reconfigure(errors="backslashreplace")
        self.error: OSError | None = None

    def write(self, text: str) -> int:
        self._attempt(self._stream.write, text)
        return len(text)

    def flush(self) -> None:
        self._attempt(self._stream.flush)

    def _attempt(self, action: Callable[..., Any], *arguments: str) -> None:
        try:
            action(*arguments)
        except BrokenPipeError:  # The reader ended, as in `... --help | head`.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            raise SystemExit(128 + signal.SIGPIPE) from None
        except OSError as error:
            self.error = error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _refuse(problem: str) -> NoReturn:
    print(f"error: {one_line(problem)}", file=sys.stderr)
    raise SystemExit(2)


def _end(status: int) -> NoReturn:
    """Ends the process now: TensorFlow would wait minutes for other workers and its readers."""
    sys.stdout.flush()
    if isinstance(sys.stdout, _Output) and sys.stdout.error:
        print(f"error: the output can't be written ({sys.stdout.error.strerror}).", file=sys.stderr)
        status = 1
    sys.stderr.flush()
    os._exit(status)


def this_program() -> list[str]:
    """Returns the words that started this program, without its arguments.

    A console script of the wheel, such as electra-pretrain, is its name alone.
    """
    script = os.path.basename(sys.argv[0])
    if script.startswith("electra-"):
        return [script]
    return sys.orig_argv[:len(sys.orig_argv) - len(sys.argv) + 1]


def other_program(script: str, module: str, file: str = "") -> list[str]:
    """Returns the words that start another program of this project as this one was started.

    `file` is its Python file, which exists in a clone of the repository only.
    """
    if this_program()[0].startswith("electra-"):
        return [script]
    python, clone = sys.orig_argv[0], pathlib.Path(__file__).resolve().parents[2]
    if file and (clone / file).exists():
        return [python, file if str(clone) == os.getcwd() else str(clone / file)]
    # A script finds the package beside itself; a module is found from the current directory.
    is_elsewhere = sys.path[0] == str(clone) != os.getcwd()
    return [*(["env", f"PYTHONPATH={clone}"] if is_elsewhere else []), python, "-m", module]


def as_started(text: str) -> str:
    """Returns text with console scripts for Python commands, if this program is such a script."""
    if not this_program()[0].startswith("electra-"):
        return text
    names = {"run_pretraining.py": "electra-pretrain", "run_finetuning.py": "electra-finetune"} | {
        script.module: script.name for script in metadata.distribution("electra-tf").entry_points}
    return re.sub(r"(?<![\w/.-])(?:python (?:-m )?)?([\w.]+\w)",
                  lambda match: names.get(match[1], match[0]), text)


def same_command() -> str:
    """Returns the command that continues this one: without the flags that delete its results."""
    return shell_command([*this_program(), *(word for word in _arguments if not re.fullmatch(
        "--?(no)?(restart|overwrite)(=.*)?", word, re.DOTALL))])


def shell_command(words: Iterable[str]) -> str:
    """Returns words as a shell reads them, on one line of printable characters."""
    return " ".join(shlex.quote(word) if word.isprintable() else "$'{}'".format(
        "".join(f"\\{byte:03o}" for byte in os.fsencode(word))) for word in words)


def _grouped_help(summary: str, groups: Groups) -> str:
    lines = [as_started(textwrap.dedent(summary).strip())]
    for title, names in groups.items():
        lines += ["", f"{title}:"]
        for flag in (flags.FLAGS[name] for name in names):
            lines += [f"  --[no]{flag.name}" if flag.boolean else f"  --{flag.name}=VALUE",
                      *(f"      {line}" for line in textwrap.wrap(
                          _help_text(flag), width=86, break_on_hyphens=False))]
    return "\n".join(lines)


def _help_text(flag: flags.Flag) -> str:
    """Returns the help text of a flag with choices and default, in this program's style."""
    text = re.sub(r";\s+repeat this option.*", "", flag.help)  # absl adds it to a sentence.
    if choices := re.match("<(.*)>: ", text):
        text = f"{text[choices.end():]} One of {choices[1].replace('|', ', ')}."
    if flag.default in (None, "", []) or "Default: " in text:
        return text
    return f"{text} Default: {display_value(flag.default)}."
