"""What a user is told of a mistake: one line that is safe to print."""

import re
import reprlib

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
