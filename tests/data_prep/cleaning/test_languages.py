"""Documents of other languages go, whole, wherever their parts are."""

import pytest

from data_prep.cleaning.settings import CleaningSettings
from electra_tf.platform.errors import UserError

ENGLISH = ("The committee will meet again on Thursday to discuss the budget for the next year, "
           "and everybody who lives in the town is invited to listen.")
GERMAN = ("Der Ausschuss wird am Donnerstag wieder zusammenkommen, um über den Haushalt des "
          "nächsten Jahres zu sprechen, und alle Einwohner der Stadt sind eingeladen.")
FRENCH = ("Le comité se réunira de nouveau jeudi pour discuter du budget de l'année prochaine, et "
          "tous les habitants de la ville sont invités à écouter.")


@pytest.mark.parametrize(("languages", "left"), [
    (("en",), [[ENGLISH], []  , []]), (("de", "fr"), [[], [GERMAN], [FRENCH]])])
def test_documents_in_the_languages_asked_for_stay(clean, languages, left):
    found, tally = clean([[ENGLISH], [GERMAN], [FRENCH]], languages=languages)
    assert found["train"] == left
    gone = left.count([])
    assert tally["other_language_documents"] == tally["lines_of_dropped_documents"] == gone


def test_a_document_is_judged_as_a_whole_and_by_its_first_part(clean):
    documents = [[ENGLISH, ENGLISH, GERMAN, GERMAN], [GERMAN, GERMAN, ENGLISH]]
    for unit_bytes in (1, 10**9):  # A unit for each part, or one for all.
        found, tally = clean(documents, part_lines=2, unit_bytes=unit_bytes, languages=("en",))
        assert found["train"] == [documents[0], []]
        assert tally == {"other_language_documents": 1, "lines_of_dropped_documents": 3,
                         "dropped_text_bytes": sum(len(line.encode()) for line in documents[1])}


def test_an_unknown_language_is_refused():
    with pytest.raises(UserError, match=r"--languages: 'klingon' is no known.* de, .* en, "):
        CleaningSettings(languages=("en", "klingon"))
