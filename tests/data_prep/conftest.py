"""A small vocabulary and small corpora."""

import pathlib
import string
from unittest import mock

import pytest

from data_prep import record_builder, settings
from data_prep.local_runner import LocalRunner
from data_prep.sources.registry import open_source
from data_prep.sources.source import SourceOptions
from electra_tf.data import manifest
from electra_tf.text.normalization import Normalization, TextSettings
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.data_prep.reading import make_text


@pytest.fixture(scope="session")
def vocabulary() -> Vocabulary:
    """Letters alone and as "##" pieces: nothing lower-case is unknown."""
    letters = string.ascii_lowercase
    return Vocabulary((*SPECIAL_TOKENS, *letters, *(f"##{letter}" for letter in letters), "."))


@pytest.fixture(scope="session")
def vocab_file(vocabulary, tmp_path_factory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.txt"
    vocabulary.save(path)
    return path


@pytest.fixture(scope="session")
def corpus(tmp_path_factory) -> pathlib.Path:
    """Two files, 200 documents, about 180 KB."""
    directory = tmp_path_factory.mktemp("corpus")
    for index in range(2):
        (directory / f"part_{index}.txt").write_text(make_text(100, seed=index))
    return directory


@pytest.fixture
def build(corpus, vocabulary, tmp_path):
    """Builds records of the corpus below `tmp_path`; returns their manifest."""

    def call(name="records", *, text=None, num_workers=1, overwrite=False, runner=None,
             options=None, **changes) -> manifest.Manifest | None:
        read = Normalization.of(changes.pop("lower_case", None), changes.pop("strip_accents", None))
        chosen = settings.BuildSettings(**({"max_seq_length": 32, "shard_text_bytes": 30_000,
                                            "held_out_fraction": 0.1} | changes))
        source = open_source(text or f"{corpus}/*.txt", options or SourceOptions())
        return record_builder.build_records(source, TextSettings(
            vocabulary=vocabulary, normalization=read), chosen, tmp_path / name,
                                            runner or LocalRunner(num_workers),
                                            overwrite=overwrite)

    return call


@pytest.fixture
def stopped_build(build, monkeypatch):
    """Begins a build that fails after so many finished shards."""
    class Stopped(Exception):
        pass

    def call(shards, **options):
        finish = mock.Mock(side_effect=[mock.DEFAULT] * shards + [Stopped],
                           wraps=record_builder._finish_unit)
        with monkeypatch.context() as patched, pytest.raises(Stopped):
            patched.setattr(record_builder, "_finish_unit", finish)
            build(**options)

    return call
