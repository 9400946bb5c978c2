"""Errors and notes for users: one line that is safe to print."""

import enum
import functools
import re
import reprlib
import sys

MAX_CHARACTERS = 800
"""Longest message of an error; two long paths and a sentence fit."""

_GRAPH_PLACES = ("Graph execution error", "Detected at node", 'File "', "Hint", "[[", "(", "<stack")


def one_line(text: str, max_length: int = MAX_CHARACTERS) -> str:
    r"""Returns text on one line; characters that aren't printable are escaped as in Python.

    The middle of a long text is cut, because it begins with the file and ends with the fix.

    >>> one_line("a\n  b \x1b[31m"), one_line("0123456789", max_length=7)
    ('a b \\x1b[31m', '01...89')
    """
    text = re.sub(r"\s*[\t\n\v\f\r]\s*", " ", _shortened(text, max_length))
    return _shortened("".join(
        char if char.isprintable() else char.encode("unicode_escape").decode()
        for char in text), max_length)


def _shortened(text: str, max_length: int) -> str:
    if len(text) <= max_length:
        return text
    half = (max_length - 3) // 2
    return f"{text[:half]}...{text[-half:]}"


def shown(value: object, max_length: int = 80) -> str:
    """Returns a value as Python writes it, shortened, on one line; an enum's member as its value.

    >>> shown("x" * 1000, max_length=9), shown([1, 2])
    ("'xx...xx'", '[1, 2]')
    """
    if isinstance(value, enum.Enum):
        value = value.value
    brief = reprlib.Repr()
    brief.maxstring = brief.maxother = max_length
    try:
        return one_line(brief.repr(value), max_length)
    except ValueError:  # Python refuses to write more than 4,300 digits.
        return f"a {type(value).__name__} with too many digits"


def tensorflow_reason(error: Exception, max_length: int = 200) -> str:
    """Returns the reason in an error's message, on one line, without places in graph and files."""
    # The reason of a failed assertion is its own text.
    message = getattr(error, "message", None) or str(error)
    if assertion := re.search(r"assertion failed: \[(.*?)\]", message):
        return assertion[1]
    # Otherwise, the last cause, without names of nodes and what follows them.
    message = re.split(r"\[Op:|Additional GRPC|The error could be", re.sub(
        r"\{\{.*?\}\}", "", message.split("aborted by:")[-1]))[0]
    # Of several errors, TensorFlow numbers the lines: "(0) RESOURCE_EXHAUSTED: ...".
    lines = [line.strip() for line in message.splitlines()
             if re.match(r"\s*\(\d+\) ", line) or not line.strip().startswith(_GRAPH_PLACES)]
    return " ".join(" ".join(lines).split())[:max_length].rstrip(". ")


class UserError(ValueError):
    """A mistake in a user's file, row, flag or setting, which commands print without a traceback.

    The message is one line that names the thing, the value received and the fix.
    """

    max_length = MAX_CHARACTERS
    _keras_call_info_injected = True  # Keras adds lines to the messages of other errors.

    def __init__(self, message: str):
        super().__init__(one_line(message, self.max_length))


class Abandoned(UserError):
    """An error of one of several workers, whose process ends without waiting for the others."""

    max_length = 8000  # It ends with a whole command.


def note(text: str) -> None:
    """Prints a note on standard error."""
    print(f"note: {text}", file=sys.stderr, flush=True)


note_once = functools.cache(note)
"""Prints a note the first time only."""
