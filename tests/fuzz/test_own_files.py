"""Files that this program wrote and somebody changed: refused, or read as what they now say."""

import dataclasses
import json

import hypothesis
import pytest
from hypothesis import strategies as st

from data_prep.documents import DocumentPart, ReadingNotes, parse_plain_text
from data_prep.record_builder import build_or_reuse, open_directory
from data_prep.work_units import WorkUnit
from electra_tf.checkpoints import run_directory
from electra_tf.checkpoints.run_directory import checkpoint_of_results, read_identity
from electra_tf.config.finetuning import FinetuningConfig
from electra_tf.data import manifest, shards
from electra_tf.finetuning.results import Epoch, Results, Trial
from electra_tf.reporting.metrics_log import append, read_metrics
from electra_tf.tasks.task import Kind, TaskSpec
from tests.support import tiny_records, tiny_run
from tests.support.attempts import REFUSED, attempt, cases
from tests.support.mutations import json_changed, json_lines_changed


def exact(tree):
    """Tells true from 1, and lets 1 be 1.0, as JSON does."""
    if isinstance(tree, dict):
        return {key: exact(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [exact(value) for value in tree]
    return ("truth", tree) if isinstance(tree, bool) else tree


def with_defaults(form, tree):
    """Returns a tree with the defaults of the keys that a file may leave out."""
    return {field.name: field.default for field in dataclasses.fields(form)
            if field.default is not dataclasses.MISSING} | tree


def changed(data, reader, path, tree, read):
    """What reading a changed file of JSON gave, and what stands in it if it was read."""
    content = data.draw(json_changed(tree))
    path.write_bytes(content)
    result = attempt(reader, read)
    return result, result is not REFUSED and json.loads(content.decode("utf-8-sig"))


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("own")


@pytest.fixture(scope="module")
def records(home):
    made = tiny_records.write(home / "records")
    return home / "records", made, json.loads((home / "records" / "manifest.json").read_text())


@hypothesis.given(data=st.data())
@cases()
def test_a_changed_manifest_is_refused_or_describes_the_same_records(records, data):
    directory, made, tree = records

    def read():
        result = manifest.load(directory)
        manifest.verify_shards(directory, result)
        shards.check_first_examples(result.records(directory))
        return result

    result, expected = changed(data, "manifest.json", directory / "manifest.json", tree, read)
    if result is not REFUSED:
        expected = with_defaults(manifest.Manifest, expected)
        expected["counts"] = with_defaults(manifest.Counts, expected["counts"])
        assert exact(expected) == exact(
            dataclasses.asdict(result) | {"vocabulary": result.vocabulary.to_dict()})
        same = dataclasses.replace(
            result, settings=made.settings, counts=made.counts, packing=made.packing,
            vocabulary=dataclasses.replace(
                made.vocabulary, size=result.vocabulary.size, sha256=result.vocabulary.sha256))
        assert sorted(same.shards, key=lambda shard: shard.name) == sorted(
            made.shards, key=lambda shard: shard.name)
        assert same.max_seq_length == made.max_seq_length


SETTINGS = tiny_run.config()
IDENTITY = {"max_seq_length": 32, "packing": "full", "seed": 0, "rate": 0.1, "lower_case": True}
UNIT = WorkUnit(split="train", name="train-00000", parse=parse_plain_text,
                parts=(DocumentPart(content=b"some text", key=0),))


@pytest.fixture(scope="module")
def receipt(home):
    directory = home / "build"
    directory.mkdir()
    open_directory(directory, IDENTITY, overwrite=False)
    (directory / "train-00000.tfrecord").write_bytes(b"a shard")
    shard = manifest.Shard(
        name="train-00000.tfrecord", split="train", examples=1, tokens=3, bytes=7,
        sha256=manifest.file_sha256(directory / "train-00000.tfrecord"))
    outcome = shard, manifest.Counts(examples=1), ReadingNotes()
    build_or_reuse(directory, UNIT, lambda unit: outcome, IDENTITY)
    path = directory / ".finished-train-00000.json"
    return directory, path, outcome, json.loads(path.read_text())


@hypothesis.given(data=st.data())
@cases()
def test_a_changed_receipt_never_changes_what_was_built(receipt, data):
    directory, path, outcome, tree = receipt
    result, _ = changed(data, "receipt of a shard", path, tree, lambda: build_or_reuse(
        directory, UNIT, lambda unit: outcome, IDENTITY))
    assert result is REFUSED or result == outcome


def settings_tree(finetuned: bool):
    facts = {"lower_case": True, "strip_accents": False, "initial": None, "vocabulary": "ab" * 32}
    if not finetuned:
        return run_directory.identity(SETTINGS, facts | {"dataset": "cd" * 32})
    spec = TaskSpec(name="classification", kind=Kind.CLASSIFICATION, labels=("no", "yes"),
                    metrics=("accuracy",))
    tree = run_directory.identity(FinetuningConfig(), facts | {"data": "ef"} | spec.to_dict())
    del tree["training.num_trials"]
    return tree


@pytest.mark.parametrize("finetuned", [False, True])
@hypothesis.given(data=st.data())
@cases(0.75)
def test_changed_settings_are_refused_or_read_as_they_stand(home, finetuned, data):
    result, expected = changed(data, "settings.json", home / "settings.json",
                               settings_tree(finetuned), lambda: read_identity(home))
    assert result is REFUSED or exact(result) == exact(expected)


@pytest.fixture(scope="module")
def results(home):
    made = Results(task="rte", metrics=("accuracy",), initial="none", trials=tuple(
        Trial(seed=seed, losses=((1, 0.5), (2, 0.25)), kept_epoch=1, seconds=1.0,
              examples_per_second=3.5, epochs=(Epoch(
                  epoch=1, step=2, loss=0.5, scores={"dev": {"accuracy": score, "f1": None}}),))
        for seed, score in ((1, 0.5), (2, 0.75))))
    made.save(home)
    return json.loads((home / "results.json").read_text())


@hypothesis.given(data=st.data())
@cases()
def test_changed_results_are_refused_or_read_as_they_stand(home, results, data):
    result, expected = changed(data, "results.json", home / "results.json", results,
                               lambda: (checkpoint_of_results(home), Results.load(home)))
    if result is not REFUSED:
        known = dataclasses.asdict(result[1]) | {"checkpoint": result[0]}
        absent = {"changes": {}, "fold": None, "stopped_early": False}
        expected["trials"] = [absent | trial for trial in expected["trials"]]
        assert exact(known) == exact({name: expected.get(name) for name in known})


RECORDS = [{"kind": "train", "step": 10, "loss": 1.5, "rate": None},
           {"kind": "eval", "step": 10, "loss": 1.25, "fine": True},
           {"kind": "train", "step": 20, "loss": 1, "rate": "-Infinity"}]


@hypothesis.given(data=st.data())
@cases()
def test_changed_metrics_are_refused_or_read_as_they_stand(home, data):
    path, content = home / "metrics.jsonl", data.draw(json_lines_changed(RECORDS))
    path.write_bytes(content)
    result = attempt("metrics.jsonl", lambda: read_metrics(path))
    if result is not REFUSED:
        lines = content.splitlines()
        if lines and b"}" not in lines[-1]:  # Cut short.
            del lines[-1]
        written = [json.loads(line.decode("utf-8-sig")) for line in lines if line.strip()]
        log = home / "again.jsonl"
        log.unlink(missing_ok=True)
        for record in result:
            append(log, record)
        again = log.read_bytes().split(b"\n")[:-1] if result else []
        assert [exact(json.loads(line)) for line in again] == exact(written)
