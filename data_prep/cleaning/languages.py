"""Identifies languages with py3langid (Lui and Baldwin, 2012), naive Bayes over byte n-grams."""

import functools
from collections.abc import Collection
from typing import Any

from electra_tf.platform.settings import require_one_of

LONGEST_BEGINNING = 2000
"""Characters of a document's beginning that decide its language."""


def require_known(codes: Collection[str]) -> None:
    """Raises `UserError` for a code in --languages that the classifier lacks."""
    for code in codes:
        require_one_of(sorted(_identifier().labels), "--languages", code)


def probability(text: str, codes: Collection[str]) -> float:
    """Returns the probability in [0, 1] that a text is in one of some languages."""
    return sum(found for code, found in _identifier().rank(text) if code in codes)


@functools.cache
def _identifier() -> Any:
    from py3langid import langid  # Its import takes a second, and few builds need it.

    return langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)
