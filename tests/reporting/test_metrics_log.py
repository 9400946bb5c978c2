"""One strict JSON object per line, and each step once after a kill."""

import json
import math

import pytest

from electra_tf.core.errors import UserError
from electra_tf.reporting.metrics_log import append, read_metrics, rewind


def train(step, **values):
    return {"kind": "train", "step": step, **values}


@pytest.fixture
def log(tmp_path):
    return tmp_path / "metrics.jsonl"


def test_numbers_that_are_not_finite_are_null_in_the_file(log):
    append(log, train(1, a=math.nan, b=math.inf, c=-math.inf))
    rewind(log, 1)
    assert json.loads(log.read_text(), parse_constant=pytest.fail) == train(
        1, a=None, b=None, c=None)
    [record] = read_metrics(log)
    assert all(math.isnan(record[name]) for name in "abc")


def test_a_run_killed_in_a_write_and_resumed_has_each_step_once(log):
    for step in (10, 20, 30):
        append(log, train(step))
    with log.open("a") as file:
        file.write('{"kind": "train", "step": 40, "lo')
    assert [record["step"] for record in read_metrics(log)] == [10, 20, 30]
    assert rewind(log, 20) == [train(10), train(20)]
    append(log, train(30))
    assert [record["step"] for record in read_metrics(log)] == [10, 20, 30]
    assert [path.name for path in log.parent.iterdir()] == ["metrics.jsonl"]


@pytest.mark.parametrize("lines", [
    b"%s\r\n%s\r\n", b"%s\r%s\r", b"%s\r%s", b"\xef\xbb\xbf%s\n%s\n", b"\n%s\n\n \n%s\n\n",
    b"%s\n%s", b"%s\n%s\n{", b"%s\n%s\n{\"kind\": \"tra", b"%s\r\n%s\r\n{\"kind\": "])
def test_any_line_end_and_a_cut_last_line_are_read(log, lines):
    log.write_bytes(lines % tuple(json.dumps(train(step)).encode() for step in (20, 10)))
    assert rewind(log, 20) == [train(20), train(10)] == read_metrics(log)


@pytest.mark.parametrize(("damage", "words"), [
    (b"{oops\n", "not JSON"), (b'{"kind": "train", "step": true}', "not a JSON object"),
    (b'{"kind": "train", "step": 1, "step": 2}', "'step' occurs twice"),
    (b'{"kind": "train", "step": -1}', '"step", 0 or more'),
    (b'{"kind": "train", "step": 1, "loss": "1.5"}', "'loss' must be a number"),
    (b'{"kind": "train", "step": 1, "loss": NaN}', "NaN is not a JSON number"),
    (b'{"kind": "train", "step": 3}{"kind": "train", "step": 4}', ""),
    (b"\0\0\0\0", ""), (b'{"kind": "train", "ste\xff', "")])
def test_a_damaged_line_is_named_and_the_file_kept(log, damage, words):
    content = json.dumps(train(1)).encode() + b"\n" + damage
    log.write_bytes(content)
    with pytest.raises(UserError, match=f"metrics.jsonl:2: .*{words}.*; delete the line."):
        rewind(log, 1)
    assert log.read_bytes() == content


def test_a_missing_file_or_directory_is_named(log, tmp_path):
    assert rewind(log, 0) == [] and not log.exists()
    with pytest.raises(UserError, match="metrics.jsonl does not exist; train first"):
        read_metrics(log)
    with pytest.raises(UserError, match="cannot write .*No such file or directory"):
        append(tmp_path / "absent" / "metrics.jsonl", train(1))
