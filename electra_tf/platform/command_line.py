"""The command line of every program: its exit status, its errors and a grouped `--help`."""

import atexit
import os
import select
import shlex
import signal
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TextIO

from absl import app, flags, logging

from electra_tf.platform import extras, native_logging, signals
from electra_tf.platform.errors import Abandoned, UserError, one_line, shown


def run(
    main: Callable[..., None],
    *,
    summary: str,
    groups: Mapping[str, Sequence[str]],
    operand: str = "",
) -> None:
    """Parses absl flags and runs `main`, printing a `UserError` or a signal to stop as one line.

    Exits with 0, 1 after a `UserError`, 2 after a wrong flag, 130 after Ctrl-C, 143 after SIGTERM,
    141 when its output is no longer read. Hides the log lines of libraries imported later.

    Args:
        main: takes no arguments, or the operands; reads `flags.FLAGS`.
        summary: purpose of the command, printed first by `--help`.
        groups: title -> names of the flags under it, in the order of `--help`.
        operand: names of the arguments that aren't flags, such as "DIR" or "FROM TO"; "" for none.
    """
    operands = operand.split()

    def parse(argv: Sequence[str]) -> list[str]:
        if any(argument in ("--help", "-help", "-h") for argument in argv[1:]):
            print(grouped_help(summary, groups))
            raise SystemExit(0)
        try:
            rest = flags.FLAGS(argv)
        except (flags.Error, UnicodeDecodeError) as error:  # The latter: of a --flagfile.
            _refuse(f"{error} (--help lists the flags.)")
        if len(rest) > 1 + len(operands):
            _refuse(f"unexpected argument {shown(rest[-1])}; settings are written --name=value"
                    f"{''.join(f', and there is one {name}' for name in operands)}.")
        if len(rest) <= len(operands):
            _refuse(f"{operands[len(rest) - 1]} is missing (--help says what it is).")
        return rest

    def guarded(argv: Sequence[str]) -> None:
        logging.set_verbosity(logging.WARNING)
        try:
            with signals.Interrupts():
                main(*argv[1:])
        except UserError as error:
            print(f"error: {error}", file=sys.stderr)
            if isinstance(error, Abandoned):
                _end(1)
            raise SystemExit(1) from None
        except OSError as error:
            if error.filename is None:
                raise
            print(f"error: cannot use {shown(str(error.filename))}: {one_line(error.strerror)}.",
                  file=sys.stderr)
            raise SystemExit(1) from None
        except ModuleNotFoundError as error:
            if (missing := extras.how_to_install(error)) is None:
                raise
            print(f"error: {missing}", file=sys.stderr)
            raise SystemExit(1) from None
        except signals.Interrupted as interrupted:
            if str(interrupted):
                print(interrupted, file=sys.stderr)
            _end(interrupted.status)
        if "TF_CONFIG" not in os.environ:  # Several workers end together.
            atexit._run_exitfuncs()
            _end(0)

    _open_closed_outputs()
    sys.stdout, sys.stderr = _Output(sys.stdout), _Output(sys.stderr)
    native_logging.quiet()
    try:
        app.run(guarded, flags_parser=parse)
    except BrokenPipeError:
        if not _output_is_read():
            os._exit(128 + signal.SIGPIPE)  # As other programs do in `... --help | head`.
        raise


def _open_closed_outputs() -> None:
    """Discards what is written to a closed output: `>&-` would give its number to another file."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, number)
            setattr(sys, name, open(number, "w", encoding="utf-8", closefd=False))


class _Output:
    """An output whose errors do not end the program, such as a full disk; `_end` reports them."""

    def __init__(self, stream: TextIO):
        self._stream = stream
        self.error: OSError | None = None

    def write(self, text: str) -> int:
        self._attempt(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        self._attempt(self._stream.flush)

    def _attempt(self, action: Callable[[], Any]) -> None:
        try:
            action()
        except BrokenPipeError:
            raise
        except OSError as error:
            self.error = error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _output_is_read() -> bool:
    poll = select.poll()
    poll.register(1, select.POLLOUT)
    # A pipe without a reader: POLLERR on Linux, POLLHUP on macOS.
    return not any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


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


def same_command() -> str:
    """Returns the command of this process, as it was typed."""
    return shlex.join(sys.orig_argv)


def grouped_help(summary: str, groups: Mapping[str, Sequence[str]]) -> str:
    """Returns the text of `--help`: the summary, then the flags by group with their defaults."""
    lines = [textwrap.dedent(summary).strip()]
    for title, names in groups.items():
        lines += ["", f"{title}:"]
        for name in names:
            lines += _describe(flags.FLAGS[name])
    return "\n".join(lines)


def _describe(flag: flags.Flag) -> list[str]:
    head = f"  --[no]{flag.name}" if flag.boolean else f"  --{flag.name}=VALUE"
    shown_already = flag.default in (None, "", []) or "Default: " in flag.help
    default = "" if shown_already else f" Default: {flag.default}."
    return [head, *textwrap.wrap(
        f"{flag.help}{default}", width=92, initial_indent="      ", subsequent_indent="      ")]
