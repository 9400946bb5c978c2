"""What --data_dir names: directories, weights, and whether they go together."""

import dataclasses
import hashlib
import json

import pytest

from electra_tf.data import manifest, mixture, order
from electra_tf.platform.errors import UserError
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests import tiny_records


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    directory = tmp_path_factory.mktemp("mixture")
    for seed, name in enumerate("abc", start=1):
        tiny_records.write(directory / name, seed=seed)
    return directory


@pytest.fixture(autouse=True)
def inside(place, monkeypatch):
    monkeypatch.chdir(place)


def shares(text):
    return [source.share for source in mixture.load(text).sources]


def test_one_directory_is_as_it_was():
    found, made = mixture.load("a"), manifest.load("a")
    assert found.fingerprint == made.fingerprint
    assert [source.share for source in found.sources] == [order.SHARES]
    assert (found.examples("train"), found.examples("eval")) == (86, 10)
    assert found.max_seq_length == made.max_seq_length and found.vocabulary == made.vocabulary


@pytest.mark.parametrize(("text", "expected"), [
    ("a:0.5,b:0.5", [5000, 5000]), ("a:3,b:1", [7500, 2500]),
    ("a:.1,b:.2,c:.7", [1000, 2000, 7000]),
    ("a:1,b:1,c:1", [3334, 3333, 3333]), ("a,b", [5000, 5000])])
def test_weights_are_relative(text, expected):
    assert shares(text) == expected


def test_a_path_may_hold_colons(tmp_path):
    for name in ("x:y", "x:2"):
        tiny_records.write(tmp_path / name)
    found = mixture.load(f"file://{tmp_path}/x:y:0.25,{tmp_path}/x:2:0.75")
    assert [source.data_dir.name for source in found.sources] == ["x:y", "x:2"]
    assert [source.share for source in found.sources] == [2500, 7500]
    # Alone, a directory has no weight that its name could be taken for.
    assert mixture.load(str(tmp_path / "x:2")).examples("train") == 86


def test_urls_and_weights_are_told_apart():
    names, weights = mixture._parsed("gs://x/y:0.5,gs://x:80/z:0.5")
    assert names == ["gs://x/y", "gs://x:80/z"] and weights == [0.5, 0.5]
    assert mixture._parsed("gs://x/y,gs://x/z") == (["gs://x/y", "gs://x/z"], None)


@pytest.mark.parametrize(("text", "problem"), [
    ("a:0.5,b", "gives 'b' no weight"), ("a,,b", "a comma without a directory"),
    ("a:0.5,", "a comma without a directory"), ("a:0.5,a:0.5", "names a twice"),
    ("a:0.5,./a:0.5", "names a twice"), ("a:1,b:0", "gives b less than a 10,000th"),
    ("a:0,b:0", "gives a less than"), ("a:100000,b:1", "gives b less than"),
    ("a:0.5,nowhere:0.5", "nowhere/manifest.json does not exist")])
def test_mistakes_are_one_line(text, problem):
    with pytest.raises(UserError, match=problem) as error:
        mixture.load(text)
    assert "\n" not in str(error.value)


def changed(directory, **values):
    made = manifest.load("a")
    directory.mkdir()
    dataclasses.replace(made, **values).save(directory)
    return f"a:0.5,{directory}:0.5"


@pytest.mark.parametrize(("name", "problem"), [
    ("length", r"their max_seq_length differs \(32, 64\)"),
    ("case", "their normalization differs"), ("vocabulary", "their vocabulary differs"),
    ("empty", "hold no training examples")])
def test_records_that_dont_go_together_are_refused(tmp_path, name, problem):
    made = manifest.load("a")
    counts = dataclasses.replace(
        made.counts, padding_positions=made.counts.padding_positions + 32 * made.counts.examples)
    other = Vocabulary((*SPECIAL_TOKENS, *(f"other{index}" for index in range(35))))
    text = changed(tmp_path / "d", **{
        "length": {"max_seq_length": 64, "counts": counts},
        "case": {"vocabulary": dataclasses.replace(made.vocabulary, lower_case=False)},
        "vocabulary": {"vocabulary": dataclasses.replace(made.vocabulary, sha256=other.sha256)},
        "empty": {"shards": (), "counts": manifest.Counts()}}[name])
    with pytest.raises(UserError, match=problem) as error:
        mixture.load(text)
    assert "\n" not in str(error.value)


def test_what_a_run_compares_is_examples_shares_and_order():
    texts = ["a:0.5,b:0.5", "b:0.5,a:0.5", "a:0.4,b:0.6", "a:0.5,c:0.5", "a", "b"]
    found = {mixture.load(text).fingerprint for text in texts}
    assert len(found) == len(texts)
    assert mixture.load("a:1,b:1").fingerprint == mixture.load("a:0.5,b:0.5").fingerprint
    parts = [[5000, manifest.load(name).fingerprint] for name in "ab"]
    assert mixture.load("a:1,b:1").fingerprint == hashlib.sha256(
        json.dumps(parts).encode()).hexdigest()
