"""Vectors of tokens agree with a plain computation, and runs begin with them."""

import numpy as np
import pytest

from electra_tf.checkpoints.run_directory import WORD_VECTORS_FILE
from electra_tf.core.errors import UserError
from electra_tf.pretraining import loop
from electra_tf.pretraining.word_vectors import cooccurrence_vectors
from tests.support import named_arrays, tiny_run

VOCAB_SIZE = 12
WORDS = "initialization__word_vectors"


def random_text() -> np.ndarray:
    """Token ids, int [4000], of which a tenth is -1; token 11 never occurs."""
    random = np.random.default_rng(0)
    ids = random.choice(11, p=np.arange(1, 12) / 66, size=4000)
    return np.where(random.random(ids.shape) < 0.1, -1, ids)


def information(ids: np.ndarray, distances: list[int]) -> np.ndarray:
    """Positive pointwise mutual information, [V, V], of tokens and neighbours, pair by pair."""
    counts = np.zeros([VOCAB_SIZE, VOCAB_SIZE])
    for at, token in enumerate(ids):
        for distance in distances:
            if 0 <= at + distance < len(ids) and min(token, ids[at + distance]) >= 0:
                counts[token, ids[at + distance]] += 1
    neighbours = counts.sum(0)**0.75 / (counts.sum(0)**0.75).sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(counts / counts.sum(1, keepdims=True) / neighbours)
    return np.where(counts > 0, np.maximum(ratio, 0), 0)


def test_similarities_of_tokens_are_those_of_a_plain_computation():
    ids = random_text()
    table = np.concatenate([information(ids, distances) for distances in (
        [1], [-1], [2], [-2], [*range(-7, -2), *range(3, 8)])], axis=1)
    directions, values, _ = np.linalg.svd(table)
    expected = directions[:, :6] * np.sqrt(values[:6])
    expected[:11] /= np.linalg.norm(expected[:11], axis=1, keepdims=True)
    vectors = cooccurrence_vectors(ids, VOCAB_SIZE, 6)
    assert vectors.shape == (VOCAB_SIZE, 6)
    np.testing.assert_allclose(vectors[:11] @ vectors[:11].T, expected[:11] @ expected[:11].T,
                               atol=1e-4)
    np.testing.assert_array_equal(vectors[11], 0)


def test_tokens_with_the_same_neighbours_have_the_same_vector():
    # Tokens 5 and 6 stand between 1 and 2, token 7 between 3 and 4.
    gap = [-1] * 7
    ids = np.array([*[1, 5, 2], *gap, *[1, 6, 2], *gap, *[3, 7, 4], *gap] * 10)
    vectors = cooccurrence_vectors(ids, VOCAB_SIZE, 8)
    assert vectors[5] @ vectors[6] == pytest.approx(1.0, abs=1e-5)
    assert abs(vectors[5] @ vectors[7]) < 1e-5


def test_no_vector_has_more_dimensions_than_tokens_exist():
    assert cooccurrence_vectors(random_text(), VOCAB_SIZE, 256).shape == (VOCAB_SIZE, VOCAB_SIZE)
    assert not cooccurrence_vectors(np.array([5]), VOCAB_SIZE, 8).any()


@pytest.fixture(scope="module")
def begun(records, tmp_path_factory):
    """The directory of a run that was killed before its first checkpoint, and its weights."""
    run = tiny_run.run_on(records, tmp_path_factory.mktemp("begun"), **{WORDS: "cooccurrence"})
    return run.model_dir, named_arrays.of(loop.restore(run)[0].model.variables)


def words_of(weights):
    (name,) = [name for name in weights if "word_embeddings" in name]
    return weights[name]


def test_a_run_begins_with_vectors_of_its_records(begun, records):
    # In `tiny_records` word w is always followed by w + 3, which decides both vectors.
    directory, weights = begun
    saved = np.load(directory / WORD_VECTORS_FILE).astype(np.float32)
    words = words_of(weights)
    random = words_of(named_arrays.of(tiny_run.run_on(records).build_model().variables))
    cosines = [_cosines(table) for table in (saved, words, random)]
    others = ~np.eye(len(saved), dtype=bool)
    known = np.linalg.norm(saved, axis=1) > 0
    others &= known & known[:, np.newaxis]
    assert np.corrcoef(cosines[0][others], cosines[1][others])[0, 1] > 0.6
    assert abs(np.corrcoef(cosines[0][others], cosines[2][others])[0, 1]) < 0.3
    # Special tokens have no vector and keep the random one.
    np.testing.assert_array_equal(words[~known], random[~known])
    assert not known[[0, 2, 3, 4]].any() and known[5:40].all()


def _cosines(table):
    table = table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-9)
    return table @ table.T


def test_a_killed_run_begins_again_with_the_same_weights_whatever_file_is_there(
        begun, records, tmp_path):
    np.save(tmp_path / WORD_VECTORS_FILE, np.ones([7, 3]))  # A killed run on other records.
    run = tiny_run.run_on(records, tmp_path, **{WORDS: "cooccurrence"})
    again = named_arrays.of(loop.restore(run)[0].model.variables)
    named_arrays.assert_close(again, begun[1], rtol=0, atol=0)


def test_a_resumed_run_needs_no_vectors(begun, records, tmp_path):
    run = tiny_run.run_on(records, tmp_path, **{WORDS: "cooccurrence"})
    loop.restore(run)[1].save(0)
    (tmp_path / WORD_VECTORS_FILE).unlink()
    named_arrays.assert_close(named_arrays.of(loop.restore(run)[0].model.variables), begun[1],
                              rtol=0, atol=0)
    assert not (tmp_path / WORD_VECTORS_FILE).exists()


@pytest.mark.parametrize("change", [
    lambda vectors: vectors[:-1], lambda vectors: vectors[0], lambda vectors: vectors * np.nan,
    lambda vectors: "text"])
def test_other_files_are_refused(begun, records, tmp_path, change):
    path = tmp_path / "vectors.npy"
    changed = change(np.load(begun[0] / WORD_VECTORS_FILE))
    path.write_text(changed) if isinstance(changed, str) else np.save(path, changed)
    run = tiny_run.run_on(records, tmp_path, **{WORDS: str(path)})
    with pytest.raises(UserError, match=r"vectors\.npy"):
        loop.restore(run)
