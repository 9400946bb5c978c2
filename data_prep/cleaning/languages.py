"""Identifies the language of a text with py3langid (Lui and Baldwin, 2012, "langid.py").

The classifier is naive Bayes over byte n-grams.
"""

import functools
from collections.abc import Collection
from typing import Any

from electra_tf.platform.errors import UserError, shown

LONGEST_BEGINNING = 2000
"""Characters of a document's beginning that decide its language."""


def require_known(codes: Collection[str]) -> None:
    """Raises `UserError` for the code of a language that the classifier lacks."""
    known = _identifier().labels
    for code in codes:
        if code not in known:
            raise UserError(f"--languages: {shown(code)} is no known language code; there are "
                            f"{', '.join(sorted(known))}.")


def probability(text: str, codes: Collection[str]) -> float:
    """Returns the probability that a text is in one of some languages."""
    return sum(found for code, found in _identifier().rank(text) if code in codes)


@functools.cache
def _identifier() -> Any:
    from py3langid import langid  # Its import takes a second, and few builds need it.

    return langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)
