"""The systems of serving and data preparation with small files."""

import json

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.export import saved_model
from electra_tf.tasks.task import Kind
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support import python_process
from tests.support.served_models import Example


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
