"""Building records: nothing is lost, nothing depends on workers or interruptions."""

import hashlib
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
import tensorflow as tf

from data_prep import documents, pipeline, record_builder, work_units
from electra_tf.data import manifest
from electra_tf.data.pipeline import parse_examples
from electra_tf.platform import process_lock
from electra_tf.platform.errors import UserError
from electra_tf.text.tokenizer import Tokenizer
from electra_tf.text.vocabulary import Vocabulary
from tests.own_lines import own_lines

ROOT = pathlib.Path(__file__).parents[2]


def shard_bytes(directory):
    return {path.name: path.read_bytes() for path in directory.glob("*.tfrecord")}


def stored_ids(directory, made, vocabulary, split):
    """Returns the ids of a split's examples, one after another, without padding."""
    ids = []
    for shard in made.shards_of(split):
        for record in tf.data.TFRecordDataset(str(directory / shard.name)).batch(256):
            batch = parse_examples(record, made.max_seq_length, made.token_bytes, vocabulary.pad_id)
            ids += tf.boolean_mask(batch.ids, batch.valid).numpy().tolist()
    return ids


@pytest.mark.parametrize("packing", ["full", "reference"])
@pytest.mark.parametrize("max_seq_length", [8, 64])
def test_every_token_of_the_corpus_is_in_the_records_once_and_in_order(
        build, corpus, vocabulary, tmp_path, packing, max_seq_length):
    made = build(packing=packing, max_seq_length=max_seq_length, held_out_fraction=0.0)
    text = [line for path in sorted(corpus.iterdir()) for line in path.read_text().splitlines()]
    expected = Tokenizer(vocabulary).tokenize(tf.constant(text)).flat_values.numpy().tolist()
    special = {vocabulary.cls_id, vocabulary.sep_id}
    stored = [i for i in stored_ids(tmp_path / "records", made, vocabulary, "train")
              if i not in special]
    assert stored == expected
    assert made.counts.text_tokens == made.counts.content_tokens == len(expected)


def test_the_manifest_counts_what_went_in_and_came_out(build, corpus, vocabulary, tmp_path):
    made = build()
    text = "".join(path.read_text() for path in sorted(corpus.iterdir()))
    lines = [line for line in text.splitlines() if line]
    counts = made.counts
    assert (counts.documents, counts.lines, counts.words, counts.text_bytes) == (
        200, len(lines), len(text.split()), sum(map(len, lines)))
    tokens = sum(len(stored_ids(tmp_path / "records", made, vocabulary, split))
                 for split in ("train", "eval"))
    assert tokens == counts.content_tokens + counts.special_tokens
    assert tokens == sum(shard.tokens for shard in made.shards)
    assert counts.padding_positions == counts.examples * 32 - tokens
    assert counts.examples == sum(shard.examples for shard in made.shards)
    assert len(made.shards_of("train")) == 4


def test_the_manifest_matches_the_files(build, vocabulary, tmp_path):
    made = build()
    loaded = manifest.load(tmp_path / "records")
    assert loaded == made
    manifest.verify_shards(tmp_path / "records", loaded)
    stored = Vocabulary.load(tmp_path / "records" / "vocab.txt")
    assert stored.sha256 == loaded.vocabulary.sha256 == vocabulary.sha256
    assert {path.name for path in (tmp_path / "records").iterdir()} == {
        "manifest.json", "vocab.txt", "vocab.txt.manifest.json",
        *(shard.name for shard in made.shards)}


def test_bytes_do_not_depend_on_the_number_of_workers(build, tmp_path):
    one, two = build("one"), build("two", num_workers=2)
    assert shard_bytes(tmp_path / "one") == shard_bytes(tmp_path / "two")
    assert one == two
    assert one.fingerprint == two.fingerprint


def test_bytes_follow_the_seed(build):
    assert build("one").fingerprint != build("two", seed=1).fingerprint


def test_a_finished_build_has_nothing_left_to_do(build, tmp_path):
    build()
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "records").iterdir()}
    assert build() is None
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "records").iterdir()}


@pytest.mark.parametrize("change", [
    {"max_seq_length": 16}, {"packing": "reference"}, {"seed": 3}, {"lower_case": False},
    {"strip_accents": False}, {"held_out_fraction": 0.2}, {"shard_text_bytes": 40_000},
    {"single_segment_rate": 0.2}])
def test_another_build_in_the_directory_is_refused_by_the_name_of_the_setting(build, change):
    build()
    with pytest.raises(UserError, match=f"holds another build: {next(iter(change))}.*--overwrite"):
        build(**change)


def test_a_changed_corpus_is_refused_finished_or_not(build, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("one line\n")
    build(text=str(text))
    text.write_text("another line\n")
    with pytest.raises(UserError, match="holds another build: corpus_sha256"):
        build(text=str(text))


def test_overwriting_leaves_nothing_of_the_other_build(build, tmp_path):
    before = build()
    after = build(overwrite=True, shard_text_bytes=90_000)
    assert len(after.shards) < len(before.shards)
    assert set(shard_bytes(tmp_path / "records")) == {shard.name for shard in after.shards}


def test_shards_of_an_unknown_build_are_refused(build, tmp_path):
    build()
    (tmp_path / "records" / "manifest.json").unlink()
    with pytest.raises(UserError, match="shards of an unknown build.*--overwrite"):
        build()


def test_a_finished_build_with_a_truncated_shard_is_not_called_finished(build, tmp_path):
    build()
    shard = tmp_path / "records" / "train-00001.tfrecord"
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(UserError, match="train-00001.tfrecord.*--overwrite"):
        build()


def test_a_restart_makes_only_the_shards_that_are_missing(build, tmp_path, monkeypatch):
    build("whole")

    class Stopped(Exception):
        pass

    original = record_builder._finish_unit
    made = []

    def stop_at_third(*arguments):
        made.append(arguments[-1].name)
        if len(made) == 3:
            raise Stopped
        return original(*arguments)

    monkeypatch.setattr(record_builder, "_finish_unit", stop_at_third)
    with pytest.raises(Stopped):
        build()
    monkeypatch.setattr(record_builder, "_finish_unit", original)
    directory = tmp_path / "records"
    with pytest.raises(UserError, match="did not finish"):
        manifest.load(directory)
    before = {path: path.stat().st_mtime_ns for path in directory.glob("*.tfrecord")}
    assert len(before) == 2
    with pytest.raises(UserError, match="holds another build: seed"):
        build(seed=1)
    build()
    assert before == {path: path.stat().st_mtime_ns for path in before}
    assert shard_bytes(directory) == shard_bytes(tmp_path / "whole")


def test_a_shard_changed_during_the_pause_is_made_again(build, tmp_path, monkeypatch):
    build("whole")
    monkeypatch.setattr(record_builder, "_manifest", lambda *_: pytest.fail("stop before the end"))
    with pytest.raises(pytest.fail.Exception):
        build()
    monkeypatch.undo()
    shard = tmp_path / "records" / "train-00000.tfrecord"
    shard.write_bytes(shard.read_bytes()[:-1] + b"?")
    (tmp_path / "records" / "train-00001.tfrecord").unlink()
    build()
    assert shard_bytes(tmp_path / "records") == shard_bytes(tmp_path / "whole")


def _start(corpus, vocab_file, output_dir, shards):
    """Starts a real build with two workers; returns it when some shards are finished."""
    command = [sys.executable, "-m", "data_prep.build_pretraining_data", f"--input={corpus}/*.txt",
               f"--vocab_file={vocab_file}", f"--output_dir={output_dir}", "--max_seq_length=32",
               "--shard_text_bytes=4000", "--held_out_fraction=0.1", "--num_workers=2"]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.PIPE,
                               text=True, start_new_session=True)
    deadline = time.monotonic() + 60
    while len(list(output_dir.glob(".finished-*"))) < shards and time.monotonic() < deadline:
        time.sleep(0.002)
    return process


def _finished(output_dir):
    """Shard -> when it was written, of those that the build knows to be finished."""
    return {path: path.stat().st_mtime_ns for path in output_dir.glob("*.tfrecord")
            if (output_dir / f".finished-{path.stem}.json").exists()}


def test_a_killed_build_goes_on_where_it_was(build, corpus, vocab_file, tmp_path):
    """A real SIGKILL, at a moment when some shards are there."""
    build("whole", shard_text_bytes=4000)
    killed = tmp_path / "killed"
    process = _start(corpus, vocab_file, killed, shards=3)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    _wait_until_workers_end(process.pid)
    finished = _finished(killed)
    assert not (killed / "manifest.json").exists()
    assert 3 <= len(finished) < len(shard_bytes(tmp_path / "whole"))
    build("killed", shard_text_bytes=4000)
    assert finished == {path: path.stat().st_mtime_ns for path in finished}
    assert shard_bytes(killed) == shard_bytes(tmp_path / "whole")
    assert list(killed.glob(".*")) == []


@pytest.mark.parametrize("send", [os.kill, os.killpg])
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_build_in_one_line_and_keeps_what_is_finished(
        build, corpus, vocab_file, tmp_path, send, number, status):
    """To the process alone, as `kill` sends it, or to its workers too, as a terminal does."""
    stopped = tmp_path / "stopped"
    process = _start(corpus, vocab_file, stopped, shards=2)
    send(process.pid, number)
    out, errors = process.communicate(timeout=30)
    assert (process.returncode, out) == (status, ""), errors
    # On a slow machine there are lines of progress before it.
    (line,) = [line for line in own_lines(errors) if "% read" not in line]
    assert line.startswith("interrupted; the shards that are finished are kept")
    assert line.endswith("--num_workers=2")
    _wait_until_workers_end(process.pid)
    finished = _finished(stopped)
    assert len(finished) >= 2
    assert not list(stopped.glob(".unfinished-*")) and not (stopped / ".lock").exists()
    build("stopped", shard_text_bytes=4000)
    assert finished == {path: path.stat().st_mtime_ns for path in finished}


def test_a_second_build_in_the_same_directory_is_refused(build, tmp_path):
    (tmp_path / "records").mkdir()
    with process_lock.only_process(tmp_path / "records", ""), pytest.raises(
            UserError, match="another process is building in --output_dir=.*/records; wait"):
        build(overwrite=True)
    assert list((tmp_path / "records").iterdir()) == []


def _wait_until_workers_end(session):
    """Workers end by themselves when their parent is killed; fails if they don't in 30 seconds."""
    for _ in range(300):
        if not any(_session(entry) == session for entry in pathlib.Path("/proc").iterdir()):
            return
        time.sleep(0.1)
    pytest.fail("workers outlive the killed build")


def _session(entry):
    try:
        fields = (entry / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[3]) if fields[0] != "Z" else None


def test_held_out_documents_dont_depend_on_where_they_stand(build, vocabulary, tmp_path):
    numbers = ["".join("abcdefghij"[int(digit)] for digit in f"{n:03d}") for n in range(200)]
    found = []
    for order in (numbers, numbers[::-1]):
        text = tmp_path / "text.txt"
        text.write_text("\n\n".join(order))
        made = build(f"{order[0]}", text=str(text), max_seq_length=256)
        ids = stored_ids(tmp_path / order[0], made, vocabulary, "eval")
        found.append(vocabulary.render(ids).replace("[CLS]", "").replace("[SEP]", "").split())
    forwards, backwards = found
    assert forwards == backwards[::-1]
    assert forwards == [n for n in numbers if documents.key_of(n.encode()) < 2**64 / 10]
    assert 10 < len(forwards) < 30


def test_a_document_longer_than_a_unit_goes_on_in_the_next():
    parts = [documents.DocumentPart(content=b"x" * 400, key=7, begins=not part, ends=part == 4)
             for part in range(5)] + [documents.DocumentPart(content=b"y" * 400, key=2**63)]
    units = list(work_units.work_units(parts, documents.parse_plain_text, 1000))
    assert [unit.name for unit in units] == ["train-00000", "train-00001", "train-00002"]
    assert [unit.documents for unit in units] == [1, 0, 1]
    assert list(itertools.chain.from_iterable(unit.lines() for unit in units)) == (
        ["x" * 400] * 5 + [""] + ["y" * 400, ""])


def test_a_corpus_of_blank_lines_is_refused_without_a_manifest(build, tmp_path):
    (tmp_path / "blank.txt").write_text("\n \n\t\n")
    with pytest.raises(UserError, match="holds no text"):
        build(text=str(tmp_path / "blank.txt"))
    assert not (tmp_path / "records" / "manifest.json").exists()


def test_a_bad_file_found_midway_stops_the_build_in_every_process(corpus, build, tmp_path):
    (tmp_path / "bad.txt").write_bytes(b"fine\n" * 9000 + b"\xff\n")
    with pytest.raises(UserError, match="bad.txt is not UTF-8: bad byte 0xff at offset 45000"):
        build(text=f"{tmp_path}/bad.txt")
    assert not (tmp_path / "records" / "manifest.json").exists()


def test_an_output_directory_that_is_a_file_is_refused(build, tmp_path):
    (tmp_path / "records").touch()
    with pytest.raises(UserError, match="cannot write .*records: .*choose another directory"):
        build()


def test_the_same_text_in_other_files_gives_other_digests_but_equal_shards(build, corpus, tmp_path):
    joined = tmp_path / "joined.txt"
    joined.write_text("\n".join(path.read_text() for path in sorted(corpus.iterdir())))
    one, other = build("one"), build("other", text=str(joined))
    assert one.settings["corpus_sha256"] != other.settings["corpus_sha256"]
    assert one.fingerprint == other.fingerprint


@pytest.mark.parametrize(("packing", "expected"), [
    ("full", "8a10ff1aece14bf1"), ("reference", "f2a3f9ef7e8bd7b9")])
def test_equal_arguments_gave_these_bytes_before(build, packing, expected):
    """A change of the chain that changes records must be meant: then note the new digest here."""
    shards = build(packing=packing).shards
    digest = hashlib.sha256(json.dumps([shard.sha256 for shard in shards]).encode()).hexdigest()
    assert digest[:16] == expected


def test_a_batch_without_a_whole_example_goes_on_in_the_next(build, tmp_path, monkeypatch):
    build("whole")
    monkeypatch.setattr(pipeline, "_BATCH_CHARACTERS", 20)
    build("small")
    assert shard_bytes(tmp_path / "small") == shard_bytes(tmp_path / "whole")


def test_the_summary_reads_as_a_table(build):
    text = record_builder.summary(build(), seconds=2.0)
    assert "of which in the examples    100.00 %" in text
    assert len({line.find(line[30:]) for line in text.splitlines()}) == 1
