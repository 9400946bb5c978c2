"""Notes for users on standard error."""

import functools
import sys


def note(text: str) -> None:
    """Prints a note."""
    print(f"note: {text}", file=sys.stderr, flush=True)


note_once = functools.cache(note)
"""Prints a note the first time only."""
