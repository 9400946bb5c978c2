"""Sentence embeddings: the loss is sentence-transformers', negatives come from the whole batch."""

import numpy as np
import pytest
import tensorflow as tf
from sklearn.metrics import label_ranking_average_precision_score, top_k_accuracy_score

from electra_tf.config.finetuning import FinetuningConfig, TaskConfig
from electra_tf.config.model import ModelConfig
from electra_tf.config.overrides import override
from electra_tf.core import storage
from electra_tf.core.machine import usable_cores
from electra_tf.data.buckets import make_batch
from electra_tf.finetuning.run import prepare_run
from electra_tf.tasks import registry
from electra_tf.tasks.files import Files
from electra_tf.tasks.kinds.embeddings import (
    EmbeddingObjective,
    contrastive_losses,
    retrieval_scores,
)
from electra_tf.tasks.registry import KINDS
from electra_tf.tasks.task import Kind, TaskSpec, TextExample
from electra_tf.text.normalization import UNCASED, TextSettings
from electra_tf.text.rows import RowEncoder
from electra_tf.training.strategies import MAX_PARTS
from tests.support.golden_batch import RNG
from tests.support.refusals import refused
from tests.support.tiny_networks import VOCABULARY

KIND = KINDS[Kind.SENTENCE_EMBEDDINGS]
CONFIG = ModelConfig(vocab_size=VOCABULARY.size, embedding_size=8, hidden_size=16, num_layers=2,
                     num_heads=2, intermediate_size=32, max_position_embeddings=32)
TEXTS = ("a text", "the longer text of the other", "other", "the other text")


def spec_of(columns=1):
    return TaskSpec(name="sentence_embeddings", kind=KIND.kind, metrics=("mrr",),
                    text_columns=tuple("abc"[:columns]))


def rows_of(*texts):
    examples = [TextExample(key=str(index), texts=parts) for index, parts in enumerate(texts)]
    encoder = RowEncoder(TextSettings(vocabulary=VOCABULARY, normalization=UNCASED), 12)
    return KIND.encode(spec_of(len(texts[0])), examples, encoder, TaskConfig()).rows


def vectors_of(columns, rows=5, size=6):
    """Vectors of length 1, float32 [rows, columns, size]: waves of the index."""
    waves = 1.7 * np.arange(rows * size, dtype=np.float64).reshape(rows, size)
    vectors = np.stack([np.sin(waves * seed + seed) for seed in range(1, columns + 1)], axis=1)
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


# sentence_transformers.losses.MultipleNegativesRankingLoss(model, scale=20.0) of version 6.2.0 on
# the columns of `vectors_of`, with a model that returns them.
@pytest.mark.parametrize(("columns", "expected"), [(2, 4.015110016), (3, 11.260734558)])
def test_the_loss_is_that_of_sentence_transformers(columns, expected):
    texts = np.arange(5 * columns, dtype=np.int32).reshape(5, columns)
    losses = contrastive_losses(
        tf.constant(vectors_of(columns)), tf.constant(texts), tf.ones([5], tf.bool), 0.05)
    assert float(tf.reduce_mean(losses)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("texts", "present", "excluded"), [
    ([[0, 1], [2, 3], [4, 5]], [True] * 3, []),
    ([[0, 1], [2, 3], [4, 5]], [True, True, False], [(0, 2), (1, 2)]),
    ([[0, 1], [2, 1], [4, 5]], [True] * 3, [(0, 1), (1, 0)]),  # Equal positives.
    ([[0, 1], [0, 3], [4, 5]], [True] * 3, [(0, 1), (1, 0)]),  # Two positives of one text.
    ([[0, 1], [2, 3], [4, 0]], [True] * 3, [(0, 2)]),  # A text is another one's positive.
    ([[0, 0], [1, 1], [0, 0]], [True] * 3, [(0, 2), (2, 0)]),  # A text that is there twice.
])
def test_padding_and_known_positives_are_no_negatives(texts, present, excluded):
    vectors = vectors_of(2, rows=3)
    losses = contrastive_losses(tf.constant(vectors), tf.constant(texts, tf.int32),
                                tf.constant(present), 0.5).numpy()
    for row in np.flatnonzero(present):
        logits = vectors[row, 0] @ vectors[:, 1].T / 0.5
        kept = [column for column in range(3) if (row, column) not in excluded]
        expected = np.log(np.exp(logits[kept]).sum()) - logits[row]
        assert losses[row] == pytest.approx(expected, rel=1e-5)


def test_the_cores_of_a_cpu_do_not_split_the_negatives(tmp_path):
    config = override(FinetuningConfig(), {"runtime.num_gpus": 0})
    text = TextSettings(vocabulary=VOCABULARY, normalization=UNCASED)
    parts = [prepare_run(config, KINDS[kind].build_spec(str(kind), labels), text, storage.path(
        tmp_path)).config.runtime.cpu_parts for kind, labels in (
            (Kind.SENTENCE_EMBEDDINGS, ()), (Kind.CLASSIFICATION, ("a", "b")))]
    assert parts == [1, min(usable_cores(), MAX_PARTS)]


def test_a_text_is_read_twice_with_different_dropout_and_once_in_prediction():
    rows = rows_of(*((text,) for text in TEXTS))
    objective = EmbeddingObjective(spec_of(), TaskConfig(pooling="cls"))
    model = objective.build_model(CONFIG, seed=0, policy="float32")
    batch = tf.nest.map_structure(tf.constant, make_batch(rows, 4, (12,), pad_id=0))
    twice, vectors = (objective.compute(model, batch, RNG, training=training).per_example[
        "embedding"].numpy() for training in (True, False))
    assert twice.shape == (4, 2, 16) and vectors.shape == (4, 1, 16)
    assert np.all(np.abs(twice[:, 0] - twice[:, 1]).max(axis=1) > 1e-3)
    hidden = model.encoder(batch.ids[:, 0], batch.segment_ids[:, 0], batch.padding_mask[:, 0])
    expected = hidden[:, 0] / tf.norm(hidden[:, 0], axis=1, keepdims=True)
    np.testing.assert_allclose(vectors[:, 0], expected, atol=1e-6)


def test_retrieval_scores_are_those_of_scikit_learn():
    vectors = vectors_of(2, rows=40, size=4)
    texts = np.arange(80).reshape(40, 2)
    cosines = vectors[:, 0] @ vectors[:, 1].T
    assert retrieval_scores(vectors, texts) == pytest.approx({
        "mrr": label_ranking_average_precision_score(np.eye(40), cosines),
        "recall_at_1": top_k_accuracy_score(np.arange(40), cosines, k=1),
        "recall_at_10": top_k_accuracy_score(np.arange(40), cosines, k=10)})


def test_equal_cosines_rank_before_and_equal_texts_do_not_count():
    constant = np.ones([4, 2, 1], np.float32)
    assert retrieval_scores(constant, np.arange(8).reshape(4, 2))["mrr"] == 0.25
    assert retrieval_scores(constant, np.array([[0, 9], [1, 9], [2, 9], [0, 8]])) == {
        "mrr": pytest.approx((1 + 1 / 2 + 1 / 2 + 1 / 3) / 4),
        "recall_at_1": 0.25, "recall_at_10": 1.0}


@pytest.mark.parametrize(("columns", "changes", "replicas", "words"), [
    (2, {"training.train_batch_size": 1}, 1, "no negatives"),
    (2, {"task.hidden_layer": True}, 1, "sentence embeddings, which have no head"),
    (1, {}, 2, "2 device.s. times 1 micro-batch"),
    (1, {"runtime.gradient_accumulation_steps": 4}, 1, "1 device.s. times 4 micro-batch"),
    (1, {"model.hidden_dropout": 0.0, "model.attention_dropout": 0.0}, 1, "both rates are 0")])
def test_settings_that_leave_fewer_negatives_or_have_no_effect_are_refused(
        columns, changes, replicas, words):
    with refused(words):
        EmbeddingObjective(spec_of(columns)).check_training(
            override(FinetuningConfig(), changes), replicas)
    for columns, negatives in ((1, 31), (2, 31), (3, 63)):
        assert EmbeddingObjective(spec_of(columns)).check_training(FinetuningConfig(), 1) == [
            f"every text has {negatives} in-batch negatives"]


def load(tmp_path, train, dev="", texts=("text",), label="", dev_texts=()):
    for name, content in (("train", train), ("dev", dev)):
        (tmp_path / f"{name}.tsv").write_text(content)
    return registry.load("sentence_embeddings", None, Files(
        train=[storage.path(tmp_path / "train.tsv")], text_columns=texts, label_column=label,
        dev=[storage.path(tmp_path / "dev.tsv")] if dev else [], dev_text_columns=dev_texts))


PAIRS = "a\tb\n" + "".join(f"first {number}\tsecond {number}\n" for number in range(20))
SCORED = "one\ttwo\tscore\nx\ty\t1\nz\tw\t2.5\n"


def test_pairs_with_numbers_are_scored_by_correlation(tmp_path):
    task = load(tmp_path, PAIRS, SCORED, ("a", "b"), "score", ("one", "two"))
    assert task.spec.metrics == ("spearman", "pearson")
    assert [(example.texts, example.label) for example in task.dev["dev"]] == [
        (("x", "y"), 1.0), (("z", "w"), 2.5)]
    task = load(tmp_path, PAIRS, SCORED, ("a", "b"), dev_texts=("one", "two"))
    assert "--label_column=score" in str(task.notes) and task.spec.metrics[0] == "mrr"


def test_without_dev_pairs_are_held_out_and_texts_are_halved(tmp_path):
    task = load(tmp_path, PAIRS, texts=("a", "b"))
    assert task.spec.metrics[0] == "mrr"
    assert (len(task.train), len(task.dev["dev"])) == (18, 2)
    texts = "text\n" + "".join(f"the first half, {number}\n" for number in range(20))
    task = load(tmp_path, texts)
    first, second = task.dev["dev"][0].texts
    assert first == "the first" and second.startswith(" half, ")
    assert "each first half has to retrieve its second" in str(task.notes)
    task = load(tmp_path, PAIRS + "alone\t \n", PAIRS, ("a", "b"))
    assert len(task.train) == 20 and "1 of 21 rows have an empty text" in str(task.notes)


@pytest.mark.parametrize("name", [
    "is_duplicate", "label", "SCORE", "isDuplicate", "Gold Label"])
def test_labels_of_pairs_are_refused_unless_all_are_equal(tmp_path, name):
    def of(line, heading=f"a\tb\t{name}"):
        return f"{heading}\n" + "".join(f"{line(number)}\n" for number in range(20))

    for table in (of("first {0}\tsecond {0}\t0".format), of(
            lambda number: f"first {number}\tsecond {number}\t{number % 2}"), of(
            lambda number: f"first {number}\t0\tsecond {number}\tx", f"a\t{name}\tb\tc")):
        with refused(f"without the column '{name}'"):
            load(tmp_path, table, texts=("a", "b"))
    task = load(tmp_path, of("first {0}\tsecond {0}\t1".format), texts=("a", "b"))
    assert len(task.train) == 18 and f"column '{name}' is not read" in str(task.notes)
    selected = of("first {0}\tsecond {0}".format, f"a\t{name}")
    assert len(load(tmp_path, selected, texts=("a", name)).train) == 18


@pytest.mark.parametrize(("first", "texts", "name"), [
    ("a\tb\tresult", ("a", "b"), "result"), ("first\tsecond\t1", ("1", "2"), "3")])
def test_a_column_of_0_and_1_beside_pairs_is_one_of_labels(tmp_path, first, texts, name):
    rows = "".join(f"first {number}\tsecond {number}\t{number % 2}\n" for number in range(20))
    with refused(f"without the column '{name}'"):
        load(tmp_path, f"{first}\n{rows}", texts=texts)
    assert len(load(tmp_path, f"{first}\n{rows}".replace("\t0\n", "\tx\n"), texts=texts).train) > 17


@pytest.mark.parametrize(("arguments", "words"), [
    ({"train": "a\tb\tscore\nx\ty\t0\nz\tw\t5\n", "texts": ("a", "b"), "label": "score"},
     "without the column 'score'"),
    *(({"train": f"a\tb\t{name}\nx\ty\t0.2\nz\tw\t0.9\n", "texts": ("a", "b")},
       f"without the column '{name}'") for name in ("cosine", "sim", "relation")),
    ({"train": "text\nx\nx\n"}, "two different rows"),
    ({"train": PAIRS, "texts": ("a",), "dev": SCORED}, "--dev and --test"),
    ({"train": PAIRS, "texts": ("a", "b"), "dev": SCORED.replace("2.5", "nan"),
      "label": "score", "dev_texts": ("one", "two")}, "dev.tsv:3: 'score' must be a number"),
    ({"train": PAIRS, "texts": ("a", "b"), "dev": SCORED.replace("2.5", "1.0"),
      "label": "score", "dev_texts": ("one", "two")}, "'score' are equal"),
    ({"train": PAIRS, "texts": ("a", "b"), "dev": "a\tb\nx\ty\n"}, "two different second texts"),
    ({"train": PAIRS, "texts": ("a", "b"), "dev": PAIRS, "label": "score"}, "no column 'score'")])
def test_files_that_would_be_learned_or_scored_wrongly_are_refused(tmp_path, arguments, words):
    with refused(words):
        load(tmp_path, **arguments)
