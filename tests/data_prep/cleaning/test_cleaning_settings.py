"""Settings of cleaning: refused with the flag's name, part of a build only where they are on."""

import pytest

from data_prep.cleaning.settings import CleaningSettings
from data_prep.settings import BuildSettings
from electra_tf.platform.errors import UserError
from electra_tf.text.tokenization import UNCASED


def test_measures_that_are_off_leave_no_trace():
    assert CleaningSettings().identity() == {}
    assert CleaningSettings().measures() == []
    assert not any("duplicate" in name or "unicode" in name for name in
                   BuildSettings().identity(UNCASED))


def test_measures_that_are_on_are_part_of_a_build():
    made = BuildSettings(cleaning=CleaningSettings(
        unicode="nfc", drop_near_duplicates=True, languages=("en", "de")))
    assert made.identity(UNCASED).items() >= {
        "unicode": "nfc", "drop_near_duplicates": True, "near_duplicate_threshold": 0.8,
        "near_duplicate_permutations": 128, "languages": "en,de", "language_confidence": 0.5,
        "min_language_characters": 100}.items()
    assert "drop_boilerplate" not in made.identity(UNCASED)


def test_limits_that_leave_no_line_and_settings_of_a_measure_that_is_off_are_refused():
    with pytest.raises(UserError, match="--max_line_characters must be at least --min_line_"):
        CleaningSettings(min_line_characters=9, max_line_characters=8)
    with pytest.raises(UserError, match="--near_duplicate_threshold belongs to --drop_near_"):
        CleaningSettings(near_duplicate_threshold=0.9)
