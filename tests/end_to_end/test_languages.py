"""Eight languages: text to vocabulary to records to pre-training to text that a person can read."""

import pathlib
import types
import unicodedata

import pytest
import tensorflow as tf

from data_prep import record_builder, settings, vocabulary_learner
from data_prep.local_runner import LocalRunner
from data_prep.sources.registry import open_source
from electra_tf.core import storage
from electra_tf.data.pipeline import parse_examples
from electra_tf.formats import pretrained
from electra_tf.formats.pretrained import Format
from electra_tf.pretraining.loop import train
from electra_tf.text.normalization import NFC, UNCASED, TextSettings
from electra_tf.text.tokenizer import Tokenizer, WordSplitter
from tests.support import tiny_run

TEXTS = pathlib.Path(__file__).parent / "languages"
KEPT = {"arabic": "أبواب", "chinese": "春", "german": "schön", "hindi": "गाँव", "japanese": "が",
        "korean": "시장에", "thai": "แม่", "turkish": "yeşil"}
"""Words of the texts that stripping accents would change, but for the Chinese."""
SIZE = 400


@pytest.fixture(scope="module", params=KEPT)
def work(request, tmp_path_factory):
    """A language's lines, and its vocabulary, normalization and records."""
    path = TEXTS / f"{request.param}.txt"
    text = open_source(str(path))
    counts = vocabulary_learner.count_corpus_words(text, NFC, LocalRunner())
    chosen, counts, reason = vocabulary_learner.choose_normalization(counts)
    vocabulary = vocabulary_learner.learn(counts, SIZE)
    records = tmp_path_factory.mktemp(request.param)
    made = record_builder.build_records(
        text, TextSettings(vocabulary=vocabulary, normalization=chosen),
        settings.BuildSettings(max_seq_length=32, held_out_fraction=0),
        records, LocalRunner())
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line]
    return types.SimpleNamespace(name=request.param, lines=lines, vocabulary=vocabulary,
                                 chosen=chosen, reason=reason, records=records, manifest=made)


def words_of(lines, normalization):
    words = WordSplitter(normalization).words(tf.constant(lines))
    return [word.decode() for word in words.flat_values.numpy()]


def stored_ids(work):
    ids, records = [], work.manifest.records(work.records)
    for shard in work.manifest.shards:
        for record in tf.data.TFRecordDataset(str(work.records / shard.name)).batch(256):
            batch = parse_examples(record, records, work.vocabulary.pad_id)
            ids += tf.boolean_mask(batch.ids, batch.padding_mask).numpy().tolist()
    special = {work.vocabulary.cls_id, work.vocabulary.sep_id}
    return [number for number in ids if number not in special]


def test_the_normalization_keeps_what_the_script_needs(work):
    kept = KEPT[work.name]
    assert work.chosen == (UNCASED if work.name == "chinese" else NFC)
    assert kept in words_of(work.lines, work.chosen) or work.name == "thai"
    assert (kept in "".join(words_of(work.lines, UNCASED))) == (work.name == "chinese")
    assert "stripping accents would change" in work.reason


def test_records_decode_to_the_words_of_the_text(work):
    assert work.manifest.counts.unknown_words == 0
    # Shards keep the order of the text, in which every character is written in one way.
    words = words_of(work.lines, work.chosen)
    assert " ".join(work.vocabulary.tokens[index] for index in stored_ids(work)).replace(
        " ##", "") == " ".join(words)
    if work.chosen == NFC and work.name != "thai":  # Of which one line is too long a word.
        text = unicodedata.normalize("NFC", "".join(work.lines))
        assert "".join(words) == "".join(text.split())


@pytest.mark.slow
@pytest.mark.parametrize("work", ["chinese", "thai"], indirect=True)
def test_pre_training_and_its_conversions_keep_the_normalization(work, tmp_path):
    run = tiny_run.run_on(work.records, tmp_path / "model", training__num_train_steps=2,
                          model__vocab_size=work.vocabulary.size)
    train(run)
    trained = pretrained.read(storage.path(tmp_path / "model"))
    assert trained.text.normalization == work.chosen
    for form in (Format.HUGGING_FACE, Format.GOOGLE, Format.RUN):
        pretrained.write(trained, tmp_path / form, form)
        at = tmp_path / form / "discriminator" if form is Format.HUGGING_FACE else tmp_path / form
        again = pretrained.read(storage.path(at))
        assert again.text == trained.text
    ids = Tokenizer(again.text).tokenize(tf.constant(work.lines)).flat_values.numpy().tolist()
    assert ids == stored_ids(work)
