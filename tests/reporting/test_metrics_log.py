"""One strict JSON object per line, each step once, whatever killed the run."""

import json
import math

import pytest

from electra_tf.platform.errors import UserError
from electra_tf.reporting.metrics_log import MetricsLog, read_metrics


def train(step, **values):
    return {"kind": "train", "step": step, **values}


@pytest.fixture
def log(tmp_path):
    return MetricsLog(tmp_path / "metrics.jsonl")


def test_not_a_number_is_strict_json_on_disk_and_a_float_again_when_read(log):
    log.append(train(1, a=math.nan, b=math.inf, c=-math.inf))
    log.rewind(1)
    assert json.loads(log.path.read_text(), parse_constant=pytest.fail) == train(
        1, a=None, b=None, c=None)
    [record] = read_metrics(log.path)
    assert all(math.isnan(record[name]) for name in "abc")


def test_a_run_killed_in_a_write_and_resumed_has_each_step_once(log):
    for step in (10, 20, 30):
        log.append(train(step))
    with log.path.open("a") as file:
        file.write('{"kind": "train", "step": 40, "lo')
    assert [record["step"] for record in read_metrics(log.path)] == [10, 20, 30]
    assert log.rewind(20) == [train(10), train(20)]
    log.append(train(30))
    assert [record["step"] for record in read_metrics(log.path)] == [10, 20, 30]
    assert [path.name for path in log.path.parent.iterdir()] == ["metrics.jsonl"]


@pytest.mark.parametrize("lines", [
    b"%s\r\n%s\r\n", b"%s\r%s\r", b"%s\r%s", b"\xef\xbb\xbf%s\n%s\n", b"\n%s\n\n \n%s\n\n",
    b"%s\n%s", b"%s\n%s\n{", b"%s\n%s\n{\"kind\": \"tra", b"%s\r\n%s\r\n{\"kind\": "])
def test_line_ends_of_any_kind_and_a_cut_last_line_keep_the_history(log, lines):
    log.path.write_bytes(lines % tuple(json.dumps(train(step)).encode() for step in (20, 10)))
    assert log.rewind(20) == [train(20), train(10)] == read_metrics(log.path)


@pytest.mark.parametrize("end", [
    b"\0\0\0\0", b"\0{\n", b'{"kind": "train", "ste\xff', b"garbage", b"{}", b"\xe2\x80\xa8",
    b'{"kind": "train", "step": 3}{"kind": "train", "step": 4}'])
def test_an_unreadable_end_is_refused_and_the_file_stays(log, end):
    content = json.dumps(train(1)).encode() + b"\n" + end
    log.path.write_bytes(content)
    with pytest.raises(UserError, match="metrics.jsonl:2: .*; delete the line."):
        log.rewind(1)
    assert log.path.read_bytes() == content


def test_rewinding_to_the_start_empties_the_file_if_there_is_one(log):
    assert log.rewind(0) == [] and not log.path.exists()
    log.append(train(10))
    assert log.rewind(0) == [] and log.path.read_text() == ""


def test_a_damaged_line_is_named_with_its_row(tmp_path):
    path = tmp_path / "metrics.jsonl"
    for damaged, words in (
            ("[1]", "not a JSON object"), ("{oops", "not JSON"),
            ('{"kind": "train"}', "not a JSON object"),
            ('{"kind": "train", "step": true}', "not a JSON object"),
            ('{"kind": "train", "step": 1, "step": 2}', "'step' occurs twice"),
            ('{"kind": "train", "step": -1}', '"step", 0 or more'),
            ('{"kind": "lunch", "step": 1}', '"kind", train or eval'), ('{"step": 1}', '"kind"'),
            ('{"kind": "train", "step": 1, "loss": "1.5"}', "'loss' must be a number"),
            ('{"kind": "train", "step": 1, "loss": NaN}', "NaN is not a JSON number")):
        path.write_text(f'{json.dumps(train(1))}\n{damaged}\n{json.dumps(train(3))}\n')
        with pytest.raises(UserError, match=f"metrics.jsonl:2: .*{words}.*; delete the line."):
            read_metrics(path)


def test_a_missing_file_and_a_missing_directory_are_named(log, tmp_path):
    with pytest.raises(UserError, match="no .*metrics.jsonl; train first"):
        read_metrics(log.path)
    with pytest.raises(UserError, match="cannot write .*No such file or directory"):
        MetricsLog(tmp_path / "absent" / "metrics.jsonl").append(train(1))
