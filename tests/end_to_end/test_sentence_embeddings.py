"""The commands of docs/how_to/sentence_embeddings.md run, and their vectors agree."""

import json
import re
import shlex

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text  # noqa: F401

import electra_tf
from electra_tf.apps.tools import convert_checkpoint
from tests.end_to_end import commands
from tests.end_to_end.commands import HARDWARE
from tests.support import command_flags, sources
from tests.support.text_files import write

PAGE = sources.ROOT / "docs" / "how_to" / "sentence_embeddings.md"
QUICK = ("--train_batch_size=4", "--max_seq_length=16", *HARDWARE)
TEXTS = [f"word{number} word{number + 1}" for number in range(8)]


def table(*columns):
    rows = [columns, *([f"{text} word{number}" for number in range(len(columns))]
                       for text in TEXTS)]
    return "".join("\t".join(row) + "\n" for row in rows)


@pytest.fixture(scope="module")
def folder(encoder, tmp_path_factory):
    """A working directory in which all commands of the page have run."""
    folder = tmp_path_factory.mktemp("embeddings")
    scored = ["sentence1\tsentence2\tscore"] + [
        f"{text}\t{text} word9\t{number}" for number, text in enumerate(TEXTS)]
    for name, content in (
            ("sentences.txt", "\n".join(TEXTS)), ("sts.tsv", "\n".join(scored)),
            ("pairs.tsv", table("question", "answer")),
            ("triplets.tsv", table("query", "relevant", "irrelevant"))):
        write(folder / name, content + "\n" * (content[-1] != "\n"))
    run = {"python run_finetuning.py": commands.finetune, "electra export": commands.export,
           "electra convert": commands.convert}
    lines = re.findall(r"(?m)^    (python run_finetuning.py|electra \S+) (.*)",
                       PAGE.read_text(encoding="utf-8").replace("\\\n", ""))
    assert len(lines) == 6
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for program, line in lines:
            extra = (f"--init_checkpoint={encoder}", *QUICK) if "--task" in line else ()
            run[program](*shlex.split(line), *extra)
    return folder


@pytest.mark.parametrize(("run", "metrics"), [
    ("texts", {"spearman", "pearson"}), ("pairs", {"mrr", "recall_at_1", "recall_at_10"}),
    ("triplets", {"mrr", "recall_at_1", "recall_at_10"})])
@pytest.mark.slow
def test_every_kind_of_rows_is_trained_and_scored(folder, run, metrics):
    results = json.loads((folder / "runs" / run / "results.json").read_text())
    assert results["summary"]["dev"].keys() == metrics


@pytest.mark.slow
def test_predictions_exports_and_conversions_have_the_same_vectors(folder):
    vectors = electra_tf.load(folder / "runs" / "texts").embed(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    served = tf.saved_model.load(str(folder / "served" / "texts" / "1")).signatures
    records = electra_tf.load_task(folder / "runs" / "texts").predict(TEXTS)
    for others in (np.load(folder / "vectors.npy"),
                   served["serving_default"](tf.constant(TEXTS))["embedding"].numpy(),
                   np.stack([record["prediction"] for record in records]),
                   electra_tf.load(folder / "texts_st").embed(TEXTS)):
        np.testing.assert_allclose(others, vectors, atol=1e-5)


@pytest.mark.slow
def test_two_columns_are_predicted_as_cosines(folder, monkeypatch):
    monkeypatch.chdir(folder)
    commands.finetune("--mode=predict", "--model_dir=runs/texts", "--input=pairs.tsv",
                      "--text_columns=question,answer", "--output=cosines.jsonl")
    first, second = (electra_tf.load("runs/texts").embed(
        [f"{text} word{number}" for text in TEXTS]) for number in range(2))
    cosines = [json.loads(line)["prediction"]
               for line in (folder / "cosines.jsonl").read_text().splitlines()]
    np.testing.assert_allclose(cosines, np.sum(first * second, axis=1), atol=1e-5)


@pytest.mark.slow
def test_a_run_comes_back_from_the_format_of_sentence_transformers(folder):
    target = folder / "back"
    command_flags.run(convert_checkpoint, f"--from={folder / 'texts_st'}", f"--to={target}",
                      "--to_format=run")
    np.testing.assert_array_equal(electra_tf.load(target).embed(TEXTS),
                                  electra_tf.load(folder / "texts_st").embed(TEXTS))
