"""Command-line flags of one program at a time: several programs share names."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType

from absl import flags
from absl.testing import flagsaver


@contextlib.contextmanager
def defined(define: Callable[[], None]) -> Iterator[None]:
    """Defines a program's flags, and takes them away again."""
    before = set(flags.FLAGS)
    define()
    try:
        yield
    finally:
        for name in set(flags.FLAGS) - before:
            delattr(flags.FLAGS, name)


def call(main: Callable[[], None], *arguments: str) -> None:
    """What a program does with these arguments, in this process."""
    with flagsaver.flagsaver():
        flags.FLAGS(["program", *arguments])
        main()


def run(program: ModuleType, *arguments: object, names: Sequence[object] = ()) -> None:
    """Calls a program with flags, and with names that are no flags, as its command line does."""
    with defined(program.define):
        call(lambda: program.main(*map(str, names)), *map(str, arguments))
