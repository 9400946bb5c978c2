"""Whatever a message quotes, it is one short line that no terminal obeys."""

import pickle

import pytest

from electra_tf.core.errors import MAX_CHARACTERS, UserError, shown, tensorflow_reason


@pytest.mark.parametrize(("quoted", "safe"), [
    ("a\nb", "a b"), ("a \r\n\t b", "a b"), ("\x1b[2J", "\\x1b[2J"), ("\u202egpj", "\\u202egpj"),
    ("\u2028", "\\u2028"), ("\ud800", "\\ud800"), ("\0", "\\x00"), ("\x9b31m", "\\x9b31m"),
    ("naïve 中文 😀", "naïve 中文 😀")], ids=range(9))
def test_what_a_terminal_would_obey_is_written_out(quoted, safe):
    error = UserError(f"file: {quoted}; fix")
    assert str(error) == str(pickle.loads(pickle.dumps(error))) == f"file: {safe}; fix"


def test_a_long_message_keeps_its_beginning_and_its_end():
    message = str(UserError(f"a.tsv:3: {'x' * 10**6} Name another file."))
    assert len(message) <= MAX_CHARACTERS
    assert message.startswith("a.tsv:3: xxx") and message.endswith("xxx Name another file.")
    assert len(str(UserError("\0" * 10**5))) <= MAX_CHARACTERS  # Escapes count as printed.


@pytest.mark.parametrize(("value", "words"), [
    (10**6000, "a int with too many digits"), ([[[[[[[1]]]]]]], "[[[[[[[...]]]]]]]"), ("x", "'x'"),
    ({"a": None}, "{'a': None}")], ids=["digits", "nested", "text", "mapping"])
def test_a_value_of_any_kind_can_be_shown(value, words):
    assert shown(value) == words
    assert len(shown("x" * 10**6)) == 80
    assert len(shown(list(range(10**6)))) < 80


@pytest.mark.parametrize(("message", "reason"), [
    ("{{function_node __wrapped__X}} no such file [Op:ReadFile]", "no such file"),
    ("Graph execution error:\n\nDetected at node X\nassertion failed: [a shard] [1]", "a shard"),
    ("Collective ops is aborted by: connection lost.\nThe error could be from an op",
     "connection lost"),
    ("2 root error(s) found.\n  (0) RESOURCE_EXHAUSTED: disk full\n\t [[{{node Save}}]]",
     "2 root error(s) found. (0) RESOURCE_EXHAUSTED: disk full"),
    ("Socket closed\nAdditional GRPC error information", "Socket closed")])
def test_the_reason_of_tensorflow_has_no_places_in_its_graph(message, reason):
    assert tensorflow_reason(ValueError(message)) == reason
