"""Beam's runners make the same records as local processes, with the same errors."""

import pytest

from data_prep import record_builder, vocabulary_learner
from data_prep.beam_runner import BeamRunner
from data_prep.local_runner import LocalRunner
from data_prep.sources import files
from data_prep.sources.registry import open_source
from data_prep.work_units import CorpusPart, WorkUnit
from electra_tf.core.errors import UserError
from electra_tf.text.normalization import UNCASED
from tests.data_prep.reading import contents
from tests.support.python_process import own_lines


def direct(tmp_path, *arguments):
    return BeamRunner("DirectRunner", arguments, tmp_path / "scratch")


def test_records_and_words_are_equal_on_beam_and_locally(
        build, corpus, monkeypatch, tmp_path):
    monkeypatch.setattr(files, "CORPUS_PART_BYTES", 1000)  # Every file of the corpus is a part.
    local = build("local", held_out_fraction=0.02)
    build("beam", runner=direct(tmp_path), held_out_fraction=0.02)
    assert [shard.name for shard in local.shards_of("train")] == [
        f"train-0000{part}-0000{index}.tfrecord" for part in range(2) for index in range(3)]
    assert contents(tmp_path / "beam") == contents(tmp_path / "local")
    source = open_source(f"{corpus}/*.txt")
    words, beam_words = (vocabulary_learner.count_corpus_words(source, UNCASED, runner)
                         for runner in (LocalRunner(), direct(tmp_path)))
    assert words == beam_words
    assert words.total() == local.counts.words
    assert not (tmp_path / "scratch").exists()


def test_a_worker_s_error_reaches_the_user_as_its_line(build, tmp_path, capfd):
    (tmp_path / "bad.txt").write_bytes(b"fine\n" * 9000 + b"\xff\n")
    lines = []
    for runner in (LocalRunner(), direct(tmp_path)):
        with pytest.raises(UserError) as error:
            build(text=f"{tmp_path}/bad.txt", runner=runner)
        lines.append(str(error.value))
    assert lines[0] == lines[1]
    assert "bad.txt is not UTF-8: bad byte 0xff at offset 45000" in lines[0]
    assert own_lines(capfd.readouterr().err) == []
    assert not (tmp_path / "scratch").exists()


def test_a_worker_of_another_build_writes_nothing(tmp_path):
    record_builder.open_directory(tmp_path, {"seed": 1}, overwrite=False)
    unit = WorkUnit(split="train", name="train-00000", parts=(), parse=list)
    for identity in ({"seed": 2}, {}):
        with pytest.raises(UserError, match="taken over by another build"):
            record_builder.build_or_reuse(tmp_path, unit, pytest.fail, identity)


def test_a_bug_in_a_worker_is_raised(corpus, tmp_path):
    runner = direct(tmp_path)
    with pytest.raises(Exception, match="a bug"):
        list(runner.run([CorpusPart(open_source(f"{corpus}/*.txt"))], lambda part: [part], _broken,
                        int))
    assert not (tmp_path / "scratch").exists()


def _broken(part):
    raise ZeroDivisionError("a bug")


@pytest.mark.parametrize(("arguments", "message"), [
    (("--direct_number=2",), "Beam 2.77.0 has no --direct_number"),
    (("--direct_running_mode=multi_processing",), "several processes .* give --num_workers"),
])
def test_an_unknown_option_of_beam_is_refused_at_once(
        tmp_path, arguments, message, capfd):
    with pytest.raises(UserError, match=message):
        direct(tmp_path, *arguments)
    assert capfd.readouterr().err == ""


def test_a_missing_job_server_is_named(tmp_path):
    runner = BeamRunner("PortableRunner", ("--job_endpoint=localhost:1",), tmp_path / "scratch")
    with pytest.raises(UserError, match="no job server answers at localhost:1 "):
        list(runner.run([], lambda part: [part], _broken, int))
    assert not (tmp_path / "scratch").exists()
