"""Which language a document is in, by py3langid (Lui and Baldwin, 2012, "langid.py").

A naive Bayes classifier over byte n-grams; its model is a part of the package.
"""

import functools
from collections.abc import Sequence
from typing import Any

from electra_tf.platform.errors import UserError, shown

_CHARACTERS = 2000
"""Of a document's beginning: it is judged by so many."""


def require_known(codes: Sequence[str]) -> None:
    """Raises `UserError` if a language isn't among those that are told apart."""
    known = _identifier().labels
    for code in codes:
        if code not in known:
            raise UserError(f"--languages: {shown(code)} is no known language code; there are "
                            f"{', '.join(sorted(known))}.")


def is_in(text: str, codes: Sequence[str], confidence: float, min_letters: int) -> bool:
    """Returns whether a text's beginning is in one of some languages, or too short to tell.

    `confidence` is the least probability of all languages together.
    """
    beginning = text[:_CHARACTERS]
    if sum(map(str.isalpha, beginning)) < min_letters:
        return True
    return sum(probability for code, probability in _identifier().rank(beginning)
               if code in codes) >= confidence


@functools.cache
def _identifier() -> Any:
    from py3langid import langid  # Here: it takes a second, and few builds need it.

    return langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)
