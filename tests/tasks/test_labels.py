"""Labels in the forms of other programs: read without ambiguity, or left and noted."""

import json

import numpy as np
import pytest

from electra_tf.tasks.labels import in_order, notes_on, parsed, separators


@pytest.mark.parametrize("numbers", [range(12), range(-11, 3), [100, 20, 3], [1, 0]])
@pytest.mark.parametrize("form", ["{}", "{}.0"])
def test_whole_numbers_have_the_order_of_numpy_unique_and_other_labels_of_text(numbers, form):
    texts = [form.format(number) for number in numbers]
    assert in_order(texts) == tuple(form.format(number) for number in np.unique([*numbers]))
    for labels in (["10", "2", "b"], ["0.5", "10.0", "2.0"], ["10", "9", ""], []):
        assert in_order(labels[::-1]) == tuple(sorted(labels))


@pytest.mark.parametrize("labels", [[], ["a"], ["it's", 'the "b"'], ["x, y", "world news"], [0, 1],
                                    ["é", "[c]"]])
def test_printed_lists_are_the_lists(labels):
    for text in (str(labels), json.dumps(labels), f" {labels}", str((*labels, "z"))):
        assert parsed(text) == ([*labels, "z"] if text[0] == "(" else labels)
    assert sorted(map(str, parsed(str({"a", *labels})))) == sorted({"a", *map(str, labels)})


@pytest.mark.parametrize(("value", "labels"), [
    ({"pos": 1.0, "neg": 0.0}, ["pos"]), ("set()", []), ("{'pos': 1, 'neg': 1}", ["pos", "neg"]),
    ('{"pos": true, "neg": false}', ["pos"]), ({"a": 0}, []),
    *((value, value) for value in (
        "a", "", "['a' 'b']", "['a'\n 'b']", "[a, b]", "(other)", "(1)", "[0 1]", "[1. 0.]", "{a}",
        "array(['a'])", {"a": 0.5}, None, 3, "[" * 5000, "{'a': 0.5}", "settled"))])
def test_objects_of_0_and_1_are_the_labels_that_apply_and_others_stay(value, labels):
    assert parsed(value) == labels


@pytest.mark.parametrize(("cells", "mark"), [
    (["a", "b", "a,b"], ","), (["a", "b", "b#a", "a#b"], "#"), (["a#b", "b#c", "a#c"], "#"),
    (["world news", "money", "money\nworld news", "world news\nmoney"], "\n"),
    (["a", "b", "c", "a b", "b c"], " "), (["a", "b", "c", "a / b", "b / c"], " / "),
    (["体育", "财经", "体育、财经", "财经、体育"], "、"), (["1 0 0", "0 1 1"], " "),
    *((cells, None) for cells in (
        ["a", "b"], ["c#", "f#", "c"], ["world news", "world", "news"], ["red wine", "white wine"],
        ["north", "east", "north-east", "east-north"], ["sports", "sports/football", "sports/golf"],
        ["issue#5", "issue#6"], ["R&B", "Sci/Tech", "B2B"], []))])
def test_marks_between_labels_separate_them_and_marks_within_do_not(cells, mark):
    assert separators(cells) == ([] if mark is None else [mark])


def test_labels_that_look_equal_are_noted():
    for pair in ("\u00e9 e\u0301", "\ufb01lm film", "a a\u200b", "A a", "1 1.0", "\uff15 5"):
        [note] = [note for note in notes_on(pair.split(" ")) if "joined" not in note]
        assert note.startswith("different labels are equal except for")
    assert not notes_on(["a", "á", "ab"])


def test_labels_that_may_stand_for_a_missing_one_are_noted():
    for missing, others in (("-", "a b"), ("nan", "a b"), ("NULL", "a b"), ("-1", "0 1 2")):
        [note] = notes_on([missing, *others.split()])
        assert note.startswith(f"'{missing}' may stand for a missing label")
    assert not notes_on(["-1", "0", "1"]) + notes_on(["-2", "-1", "0", "1", "2"])
