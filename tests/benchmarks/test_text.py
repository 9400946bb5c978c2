"""The systems of serving and data preparation with small files, and their tables."""

import json

import numpy as np
import pytest
import tensorflow as tf

from benchmarks.data_prep import __main__ as data_prep
from benchmarks.driver import BASELINE, OURS, System
from benchmarks.serving import __main__ as serving
from electra_tf.export import saved_model
from electra_tf.tasks.task import Kind
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support import python_process
from tests.support.served_models import Example


def measured(name, role, lines):
    return System(name=name, module="none", role=role, settings={}, lines=[
        {"label": name, **line} for line in lines])


def rows_of(lines):
    return [[cell.strip() for cell in line.strip("|").split("|")]
            for line in lines if line.startswith("| ")][2:]


def test_speeds_are_of_the_texts_bytes_and_tokens():
    lines = data_prep.table([
        measured("ours", OURS, [{"seconds": seconds, "tokens": 500_000, "peak_gb": 0.8}
                                for seconds in (1.0, 2.0, 4.0)]),
        measured("hf", BASELINE, [{"seconds": 8.0, "tokens": 800_000, "peak_gb": 0.25}])],
        text_bytes=2_000_000)
    assert rows_of(lines) == [
        ["ours", "1.00 (0.50 to 2.00)", "4.00", "0.25 (0.12 to 0.50)", "2.50", "0.80"],
        ["hf", "0.25 (0.25 to 0.25)", "1.00", "0.10 (0.10 to 0.10)", "1.00", "0.25"]]


def test_latencies_are_percentiles_of_calls_and_answers_are_compared():
    """Two rounds over 100 texts: the median is the 50th of 100 calls, p99 the 99th."""
    def answered(name, role, scale, probabilities):
        return measured(name, role, [{
            "texts/1": [scale * index / 1e3 for index in range(1, 101)], "texts/32": [scale] * 4,
            "probabilities": probabilities}] * 2)

    ours, hf = rows_of(serving.section("texts", [
        answered("ours", OURS, 1.0, [0.25, 0.5]), answered("hf", BASELINE, 2.0, [0.25, 0.75])]))
    assert ours == ["ours", "50.00 (50.00 to 50.00)", "2.00", "99.00 (99.00 to 99.00)", "2.00",
                    "4.00 (4.00 to 4.00)", "2.00", "0"]
    assert hf[1] == "100.00 (100.00 to 100.00)" and hf[-1] == "0.2"


def printed(module, **settings):
    text = python_process.run("-m", f"benchmarks.{module}.systems", json.dumps(settings)).stdout
    return json.loads(text[text.index("{"):])


@pytest.mark.slow
def test_our_records_have_all_tokens(tmp_path):
    Vocabulary((*SPECIAL_TOKENS, "some", "words")).save(tmp_path / "vocab.txt")
    (tmp_path / "text.txt").write_text("some words\nwords\n\n" * 40)
    line = printed("data_prep", name="full", text=str(tmp_path / "text.txt"),
                   vocab_file=str(tmp_path / "vocab.txt"), max_seq_length=16)
    assert line["tokens"] == 3 * 40 and line["bytes"] > 500


@pytest.mark.slow
def test_an_export_answers_what_it_answers_here(tmp_path):
    example, texts = Example(Kind.CLASSIFICATION), ["the cafe won", "who won ?", "a b"]
    saved_model.export(example.servable, tmp_path / "1", "float32")
    (tmp_path / "texts.txt").write_text("\n".join(texts) + "\n")
    line = printed("serving", directory=str(tmp_path / "1"), max_length=12,
                   files=[str(tmp_path / "texts.txt")])
    answers = example.signatures["serving_default"](text=tf.constant(texts))["probabilities"]
    # One by one, then in a batch.
    np.testing.assert_allclose(line["probabilities"], [*answers.numpy()[:, 0]] * 2, atol=1e-6)
    assert [len(line[f"{tmp_path}/texts.txt/{batch}"]) for batch in (1, 32)] == [3, 1]
