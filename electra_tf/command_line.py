"""What every command line of the project shares: one-line errors and a grouped `--help`."""

import os
import re
import reprlib
import select
import shlex
import signal
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from absl import app, flags, logging

from electra_tf import native_logging, signals

LONGEST_MESSAGE = 800
"""Characters of an error; two long paths and a sentence fit."""
LONGEST_COMMAND = 8000
"""Characters of an error that ends with a command."""
LONGEST_VALUE = 80
"""Characters of a value within an error."""


def one_line(text: str, longest: int = LONGEST_MESSAGE) -> str:
    r"""Returns text that is safe to print: one line, shortened, nothing a terminal would obey.

    What isn't printable is written as Python escapes it: control characters, escape sequences,
    marks that turn the direction of writing, lone surrogates. A long text loses its middle, for
    the file stands at the beginning and the fix at the end.

    >>> one_line("a\n  b \x1b[31m"), one_line("0123456789", longest=7)
    ('a b \\x1b[31m', '01...89')
    """
    text = re.sub(r"\s*[\t\n\v\f\r]\s*", " ", _shortened(text, longest))
    return _shortened("".join(
        char if char.isprintable() else char.encode("unicode_escape").decode()
        for char in text), longest)


def _shortened(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    half = (longest - 3) // 2
    return f"{text[:half]}...{text[-half:]}"


def shown(value: object, longest: int = LONGEST_VALUE) -> str:
    """Returns a value as an error shows it: as Python writes it, shortened, on one line.

    >>> shown("x" * 1000, longest=9), shown([1, 2])
    ("'xx...xx'", '[1, 2]')
    """
    brief = reprlib.Repr()
    brief.maxstring = brief.maxother = longest
    try:
        return one_line(brief.repr(value), longest)
    except ValueError:  # Python doesn't write whole numbers of more than 4,300 digits.
        return f"a {type(value).__name__} with too many digits"


class UserError(ValueError):
    """A mistake in what the user gave: a file, a row, a flag or a setting.

    Its message is one line that names the thing, says what was received and how to mend it.
    Command lines print it without a traceback. Whatever the message quotes, it is made safe to
    print by `one_line`.
    """

    def __init__(self, message: str):
        super().__init__(one_line(message))


class Abandoned(UserError):
    """What else takes part in the work is gone: the process ends without waiting for it.

    The message ends with a command to be typed, which mustn't lose its middle.
    """

    def __init__(self, message: str):
        ValueError.__init__(self, one_line(message, longest=LONGEST_COMMAND))


def run(
    main: Callable[[], None],
    *,
    summary: str,
    groups: Mapping[str, Sequence[str]],
) -> None:
    """Parses absl flags and runs `main`, printing a `UserError` or a signal to stop as one line.

    Exits with 0, 1 after a `UserError`, 130 after Ctrl-C, 143 after SIGTERM, 141 when nobody reads
    its output any more.

    Libraries that are imported later are kept from talking on stderr.

    Args:
        main: takes no arguments; reads `flags.FLAGS`.
        summary: what the command does, printed first by `--help`.
        groups: title -> names of the flags under it, in the order of `--help`.
    """

    def parse(argv: Sequence[str]) -> list[str]:
        if any(argument in ("--help", "-help", "-h") for argument in argv[1:]):
            print(grouped_help(summary, groups))
            raise SystemExit(0)
        try:
            rest = flags.FLAGS(argv)
        except (flags.Error, UnicodeDecodeError) as error:  # The latter: of a --flagfile.
            _refuse(f"{error} (--help lists the flags.)")
        if len(rest) > 1:
            _refuse(f"unexpected argument {shown(rest[1])}; settings are written --name=value.")
        return rest

    def guarded(_argv: Sequence[str]) -> None:
        logging.set_verbosity(logging.WARNING)
        try:
            with signals.Interrupts():
                main()
        except UserError as error:
            print(f"error: {error}", file=sys.stderr)
            if isinstance(error, Abandoned):
                _end(1)
            raise SystemExit(1) from None
        except signals.Interrupted as interrupted:
            if str(interrupted):
                print(interrupted, file=sys.stderr)
            _end(interrupted.status)

    native_logging.quiet()
    try:
        app.run(guarded, flags_parser=parse)
    except BrokenPipeError:
        if not _output_is_read():
            os._exit(128 + signal.SIGPIPE)  # As other programs do in `... --help | head`.
        raise


def _output_is_read() -> bool:
    poll = select.poll()
    poll.register(1, 0)
    return not any(event & select.POLLERR for _, event in poll.poll(0))


def _refuse(problem: str) -> NoReturn:
    print(f"error: {one_line(problem)}", file=sys.stderr)
    raise SystemExit(2)


def _end(status: int) -> NoReturn:
    """Ends the process now: at its usual end TensorFlow waits for other workers, up to minutes."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def same_command() -> str:
    """Returns the command of this process, to be typed again."""
    return shlex.join(sys.orig_argv)


def grouped_help(summary: str, groups: Mapping[str, Sequence[str]]) -> str:
    """Returns the text of `--help`: the summary, then every group's flags with their defaults."""
    lines = [textwrap.dedent(summary).strip()]
    for title, names in groups.items():
        lines += ["", f"{title}:"]
        for name in names:
            lines += _describe(flags.FLAGS[name])
    return "\n".join(lines)


def _describe(flag: flags.Flag) -> list[str]:
    head = f"  --[no]{flag.name}" if flag.boolean else f"  --{flag.name}=VALUE"
    default = "" if flag.default is None else f" (default: {flag.default_as_str})"
    return [head, *textwrap.wrap(
        f"{flag.help}{default}", width=92, initial_indent="      ", subsequent_indent="      ")]
