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


@pytest.mark.parametrize(("changes", "message"), [
    ({"unicode": "nfd"}, "--unicode must be one of none, nfc, nfkc. Received: 'nfd'"),
    ({"min_line_characters": -1}, "--min_line_characters must be 0 or more and at most 1,048,576"),
    ({"min_line_characters": 9, "max_line_characters": 8},
     "--max_line_characters must be at least --min_line_characters=9. Received: 8"),
    ({"drop_near_duplicates": True, "near_duplicate_threshold": 1.0},
     "--near_duplicate_threshold must be in (0, 1). Received: 1.0"),
    ({"drop_near_duplicates": True, "near_duplicate_permutations": 4},
     "--near_duplicate_permutations must be in [16, 1024]. Received: 4"),
    ({"near_duplicate_threshold": 0.9},
     "--near_duplicate_threshold belongs to --drop_near_duplicates, which is off"),
    ({"decontaminate": "x", "decontaminate_words": 3},
     "--decontaminate_words must be in [8, 100]. Received: 3"),
])
def test_a_bad_value_is_refused_by_the_name_of_its_flag(changes, message):
    with pytest.raises(UserError) as refused:
        CleaningSettings(**changes)
    assert str(refused.value).startswith(message)
