"""What every command line of the project shares: one-line errors and a grouped `--help`."""

import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence

from absl import app, flags, logging

from electra_tf import native_logging


class UserError(ValueError):
    """A mistake in what the user gave: a file, a row, a flag or a setting.

    Its message is one line that names the thing, says what was received and how to mend it.
    Command lines print it without a traceback.
    """


def run(
    main: Callable[[], None],
    *,
    summary: str,
    groups: Mapping[str, Sequence[str]],
) -> None:
    """Parses absl flags and runs `main`, printing a `UserError` or Ctrl-C as one line.

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
        rest = app.parse_flags_with_usage(argv)
        if len(rest) > 1:
            print(f"error: unexpected argument {rest[1]!r}; settings are written --name=value.",
                  file=sys.stderr)
            raise SystemExit(2)
        return rest

    def guarded(_argv: Sequence[str]) -> None:
        logging.set_verbosity(logging.WARNING)
        try:
            main()
        except UserError as error:
            print(f"error: {error}", file=sys.stderr)
            raise SystemExit(1) from None
        except KeyboardInterrupt:
            print("interrupted.", file=sys.stderr)
            raise SystemExit(130) from None  # As a shell reports SIGINT.

    native_logging.quiet()
    app.run(guarded, flags_parser=parse)


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
