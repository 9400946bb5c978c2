"""The project's commands, and the command line of each: exit status, errors, grouped `--help`."""

import atexit
import contextlib
import errno
import faulthandler
import gc
import os
import pathlib
import re
import select
import shlex
import signal
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import metadata
from typing import NamedTuple, NoReturn

from absl import flags, logging

from electra_tf.core import machine, signals, storage
from electra_tf.core.errors import Abandoned, UserError, one_line, shown
from electra_tf.core.setting_flags import display_value

EXTRAS = {
    "apache_beam": "data", "datasketch": "data", "mwparserfromhell": "data", "pyarrow": "data",
    "zstandard": "data", "ai_edge_litert": "serving", "starlette": "serving", "uvicorn": "serving",
    "onnx": "onnx", "onnxruntime": "onnx", "tokenizers": "onnx",
    "tensorflow_datasets": "tfds", "huggingface_hub": "hub",
    "wandb": "wandb", "mlflow": "mlflow",
}
"""Module -> optional packages of electra-tf in pyproject.toml that provide it."""
_arguments: list[str] = []
"""The arguments of this process, with the lines of a file of flags in its place."""
Groups = Mapping[str, Iterable[str]]
"""Title in `--help` -> names of the flags below it."""
_FORMS = {"DIR": "dir$|^(blimp|decontaminate)$", "TIME": "^budget$",
          "FILE": "file$|^(config|train|dev|test|unlabelled)$", "N": "^max_seq_length$|version$",
          "PATH": "^(from|to|input|output|init_checkpoint|teacher)$", "NAME=VALUE": "^set$"}
"""Form of a value in `--help` -> names of flags."""
CLONE = pathlib.Path(__file__).resolve().parents[2]
"""The directory that holds the packages; in a clone it holds the scripts as well."""


class Command(NamedTuple):
    """A command; `MODULE.run` is its main function, and `python -m MODULE` starts it too."""

    module: str
    purpose: str  # One line of `electra --help`.
    script: str = ""  # Python file at the top level of a clone.


COMMANDS = {
    "vocab": Command("data_prep.build_vocab", "learns a WordPiece vocabulary from text"),
    "records": Command("data_prep.build_pretraining_data", "makes pre-training records from text"),
    "inspect": Command("electra_tf.apps.tools.inspect_records", "reports what records contain"),
    "plan": Command("electra_tf.apps.planning.plan", "proposes a model size for a time budget"),
    "cost": Command("electra_tf.apps.planning.estimate_cost", "estimates FLOPs, time and dollars"),
    "pretrain": Command("electra_tf.pretraining.command", "pre-trains, evaluates, shows samples",
                        "run_pretraining.py"),
    "curves": Command("electra_tf.apps.tools.plot_curves", "draws the curves of runs"),
    "score": Command("electra_tf.apps.tools.score_text", "scores sentences, and BLiMP"),
    "demo": Command("electra_tf.apps.demo.demo", "shows both networks on a sentence in a browser"),
    "finetune": Command("electra_tf.finetuning.command", "fine-tunes, evaluates, predicts",
                        "run_finetuning.py"),
    "convert": Command("electra_tf.apps.tools.convert_checkpoint",
                       "converts between checkpoint formats"),
    "push": Command("electra_tf.apps.tools.push", "publishes a model on the Hugging Face Hub"),
    "export": Command("electra_tf.apps.tools.export_model",
                      "exports for TensorFlow Serving, ONNX Runtime or TensorFlow Lite"),
    "serve": Command("electra_tf.apps.serving.serve", "serves SavedModels (development server)"),
}
"""Subcommand -> its command, in the order of a project."""


def run(main: Callable[..., None], define: Callable[[], None] = lambda: None, *, summary: str,
        groups: Groups | None = None, common: Iterable[str] = (), operand: str = "") -> None:
    """Runs a program: defines and parses absl flags, calls `main`, and ends the process.

    Exits with 0 after success, 1 after a `UserError`, 2 after a wrong flag, 130 after Ctrl-C, 143
    after SIGTERM, 141 if the reader of its output ends. Errors and interruptions are one line.

    `main` takes the operands and reads `flags.FLAGS`; `operand` names them, such as "FROM TO".
    `--help` prints `summary`, then the flags of `groups` under their titles; by default those that
    `define` defines. If `common` names flags, `--help` prints these and `--helpfull` all.
    """
    # The end of the process. First registered, last called: TensorFlow would wait minutes for other
    # workers and its readers. Several workers end together.
    status: list[int] = []
    atexit.register(lambda: status and "TF_CONFIG" not in os.environ and _end(*status))

    # Output, collection of garbage, libraries and logs.
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:  # After `>&-` another file would get its number.
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
            setattr(sys, name, open(number, "w", encoding="utf-8", closefd=False))
        if getattr(sys, name).errors == "strict":  # Names of files need not be UTF-8.
            getattr(sys, name).reconfigure(errors="backslashreplace")
    faulthandler.enable()
    # At Python's 700 a seventh of the time to import TensorFlow and trace a step is collecting.
    gc.set_threshold(50_000)
    machine.configure_process()
    logging.use_absl_handler()
    logging.set_verbosity(logging.WARNING)

    # Flags; then help or work, whose errors are one line.
    shared_flags = set(flags.FLAGS)
    define()
    if groups is None:
        groups = {"Flags": [name for name in flags.FLAGS if name not in shared_flags]}
    try:
        with signals.Interrupts():
            if (text := _information(summary, groups, set(common))) is not None:
                print(text)
            else:
                main(*_parse(operand.split()))
            sys.stdout.flush()
    except signals.Interrupted as interrupted:
        if str(interrupted):
            print(interrupted, file=sys.stderr)
        _end(128 + interrupted.number)  # As a shell reports signals.
    except (UserError, OSError, ModuleNotFoundError, MemoryError) as error:
        if isinstance(error, BrokenPipeError) and not _has_reader():
            _end(128 + signal.SIGPIPE)
        if not (line := _line(error)):
            raise
        print(f"error: {line}", file=sys.stderr)
        if isinstance(error, Abandoned):
            _end(1)
        status.append(1)
    except SystemExit as ending:  # Of a wrong flag, or of a server's handler of SIGTERM.
        status.append(int(ending.code or 0))
    else:
        status.append(0)
    raise SystemExit(*status)


def _information(summary: str, groups: Groups, common: set[str]) -> str | None:
    """Returns what `--help`, `--helpfull` or `--version` prints; None without one of them."""
    # Before flags are parsed, so that a wrong or missing flag does not hide the help.
    words = {argument.lstrip("-") for argument in sys.argv[1:] if argument.startswith("-")}
    if "version" in words:
        return f"electra-tf {sys.modules['electra_tf'].__version__}"
    if not words & {"help", "helpfull", "h"}:
        return None
    # The console script has other names for the commands in examples.
    lines = [textwrap.dedent(summary).strip()]
    if _is_console_script():
        for name, (module, _, script) in COMMANDS.items():
            lines[0] = lines[0].replace(f"python {script or f'-m {module}'}", f"electra {name}")
    # Unless all flags are asked for, groups show the common ones, and a line counts the others.
    is_full = "helpfull" in words or not common
    for title, names in groups.items():
        shown_flags = [flags.FLAGS[name] for name in names if is_full or name in common]
        lines += ["", f"{title}:"] if shown_flags else []
        for flag in shown_flags:
            lines += [f"  --[no]{flag.name}" if flag.boolean else f"  --{flag.name}={_form(flag)}",
                      *(f"      {line}" for line in textwrap.wrap(
                          _help_text(flag), width=86, break_on_hyphens=False))]
    if not is_full:
        number = sum(len([*names]) for names in groups.values()) - len(common)
        lines += ["", f"--helpfull lists {number} more flags."]
    return "\n".join(lines)


def _parse(names: Sequence[str]) -> list[str]:
    """Parses the flags of this process and returns its operands, one for each of some names."""
    try:
        for name in re.findall(r"^--?flagfile[=\n](.*)", "\n".join(sys.argv[1:]), re.MULTILINE):
            path = pathlib.Path(os.path.realpath(os.path.expanduser(name)))
            if path.exists() and str(path) != os.devnull:  # The pipe of `<(...)` has no path.
                storage.open_regular(path).close()
        # Lines of --flagfile count as arguments, also in the command that a message repeats.
        _arguments[:] = flags.FLAGS.read_flags_from_files(sys.argv[1:], force_gnu=False)
        _, *operands = flags.FLAGS([sys.argv[0], *_arguments])
    except (flags.Error, ValueError) as error:
        missing = re.findall(r"flag --(\w+)=None: Flag --\1 must have", str(error))
        refuse(" ".join(f"--{name} is needed: {flags.FLAGS[name].help}" for name in missing)
               or f"{error} (--help lists the flags.)")
    if len(operands) > len(names):
        refuse(f"unexpected argument {shown(operands[-1])}; settings are written --name=value.")
    if len(operands) < len(names):
        refuse(f"{names[len(operands)]} is missing (--help describes it).")
    return operands


def _line(error: Exception) -> str:
    """Returns the line to print for an error that the user can fix; "" for others."""
    if isinstance(error, UserError):
        return str(error)
    if isinstance(error, MemoryError):
        return f"the memory is full ({one_line(str(error)) or 'no size given'}); use less data."
    # A full disk has no file name if it is that of standard output.
    if isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None:
        return f"the output can't be written ({error.strerror})."
    if isinstance(error, OSError) and error.filename is not None:
        return f"cannot use {shown(str(error.filename))}: {one_line(error.strerror)}."
    # A missing package is one of the optional ones.
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
    return f"pip install {shlex.join(requirements or [f'{CLONE}[{extra}]'])}"


def refuse(problem: str) -> NoReturn:
    """Ends a program with exit status 2 after a wrong argument."""
    print(f"error: {one_line(problem)}", file=sys.stderr)
    raise SystemExit(2)


def refuse_unused(names: Iterable[str], choice: str) -> None:
    """Raises `UserError` if a flag was given that has no effect with a choice like --mode=eval."""
    for name in names:
        if flags.FLAGS[name].present:
            raise UserError(f"--{name} has no effect with {choice}; leave it out, or give another "
                            f"{choice.partition('=')[0]}.")


def _end(status: int) -> NoReturn:
    """Ends the process now, without freeing its memory."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(status)


def _has_reader() -> bool:
    """Returns False if the program that reads standard output or error ended, such as `head`."""
    # The kernel reports an error on a pipe without a reader; nothing is written to find out.
    outputs = select.poll()
    for number in (1, 2):
        outputs.register(number, 0)  # Errors are always reported.
    return not any(event & (select.POLLERR | select.POLLHUP) for _, event in outputs.poll(0))


def _is_console_script() -> bool:
    return os.path.basename(sys.argv[0]) == "electra"


def this_program() -> str:
    """Returns the command that started this program, without its arguments."""
    words = sys.orig_argv[:len(sys.orig_argv) - len(sys.argv) + 1]
    return shell_command(["electra", *words[2:]] if _is_console_script() else words)


def command(name: str) -> str:
    """Returns the command that starts a command of this project, as this one was started.

    The console script is `electra NAME`. In a clone it is `python SCRIPT` or `python -m MODULE`.
    """
    if _is_console_script():
        return f"electra {name}".strip()
    program = COMMANDS.get(name, Command("electra_tf", ""))
    # In a clone: its script, with the clone's path if the command was started elsewhere.
    python, is_elsewhere = sys.orig_argv[0], str(CLONE) != os.getcwd()
    if program.script and (CLONE / program.script).exists():
        return shell_command([
            python, str(CLONE / program.script) if is_elsewhere else program.script])
    # A script finds the package beside itself; a module is found from the current directory.
    variables = ["env", f"PYTHONPATH={CLONE}"] if is_elsewhere and sys.path[0] == str(CLONE) else []
    return shell_command([*variables, python, "-m", program.module])


def same_command() -> str:
    """Returns the command that continues this one: without the flags that delete its results."""
    words = [word for word in _arguments if not re.fullmatch(
        "--?(no)?(restart|overwrite|yes)(=.*)?", word, re.DOTALL)]
    return f"{this_program()} {shell_command(words)}".strip()


def shell_command(words: Iterable[str]) -> str:
    """Returns words as a shell reads them, on one line of printable characters."""
    return " ".join(shlex.quote(word) if word.isprintable() else "$'{}'".format(
        "".join(f"\\{byte:03o}" for byte in os.fsencode(word))) for word in words)


def _form(flag: flags.Flag) -> str:
    """Returns the form of a flag's value: DIR, FILE, N, RATE, a|b, ..."""
    # The form follows from the name, else from the setting's declaration, else from the type.
    by_name = [form for form, names in _FORMS.items() if re.search(names, flag.name)]
    by_type = {"int": "N", "float": "X", "string enum": "|".join(
        getattr(flag.parser, "enum_values", ()))}
    return next(filter(None, [*by_name, getattr(flag, "form", ""),
                              by_type.get(flag.flag_type())]), "NAME")


def _help_text(flag: flags.Flag) -> str:
    """Returns the help text of a flag with choices and default, in this program's style."""
    text = re.sub(r";\s+repeat this option.*", "", flag.help)  # absl adds it to a sentence.
    if choices := re.match("<(.*)>: ", text):
        text = f"{text[choices.end():]} One of {choices[1].replace('|', ', ')}."
    if flag.default in (None, "", []) or "Default: " in text:
        return text
    return f"{text} Default: {display_value(flag.default)}."
