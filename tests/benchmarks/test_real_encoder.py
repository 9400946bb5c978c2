"""The comparison of a released encoder with a plain PyTorch loop: subsets, scores and the table."""

import json
import subprocess
import sys

import pytest

from benchmarks.real_encoder.__main__ import TASKS, Comparison, score, write_subset
from tests.support import peers

WORDS = ["good", "dull", "film", "a", "very"]
ENCODER = """if True:
    import sys
    from transformers import BertConfig, BertModel
    BertModel(BertConfig(vocab_size=10, hidden_size=32, num_hidden_layers=2, intermediate_size=64,
                         num_attention_heads=2, max_position_embeddings=128)).save_pretrained(
        sys.argv[1])"""


def comparison(name, metric, **fields):
    suffix = {"squad": "json", "chunk": "txt"}.get(name, "tsv")
    return Comparison(name=name, metric=metric, epochs=1, folder="", train=f"train.{suffix}",
                      dev=f"dev.{suffix}", **fields)


def test_a_subset_keeps_header_and_order_and_the_first_of_dev(tmp_path):
    lines = [f"text {index}\t{index % 2}" for index in range(50)]
    for split in ("train", "dev"):
        (tmp_path / f"{split}.tsv").write_text("sentence\tlabel\n" + "\n".join(lines) + "\n")
    task = comparison("sst2", "accuracy", train_examples=20, dev_examples=3)
    write_subset(task, tmp_path, tmp_path / "out")
    header, *kept = (tmp_path / "out" / "train.tsv").read_text().splitlines()
    assert header == "sentence\tlabel" and len(kept) == 20 and kept != lines[:20]
    assert kept == [line for line in lines if line in kept]
    assert (tmp_path / "out" / "dev.tsv").read_text().splitlines()[1:] == lines[:3]


@pytest.mark.parametrize(("name", "gold", "predictions", "expected"), [
    ("sst2", ["1", "0", "1", "0"], ["1", "0", "0", "0"], 75.0),
    # Two of three predicted pairs are equivalent, and two of three equivalent pairs are predicted.
    ("mrpc", ["1", "1", "1", "0"], ["1", "1", "0", "1"], 200 / 3),
    ("cola", ["1", "0"], ["0", "1"], -100.0),
    ("stsb", ["0.5", "1.0", "5.0"], [1.0, 2.0, 2.5], 100.0),
    ("chunk", [["B-NP", "I-NP"], ["B-VP"]], [["B-NP", "I-NP"], ["O"]], 200 / 3),
    ("squad", {"1": ["the old film"]}, {"1": "film"}, 200 / 3),
])
def test_scores(name, gold, predictions, expected):
    assert score(TASKS[name], gold, predictions) == pytest.approx(expected)


@peers.needed
@pytest.mark.slow
def test_both_programs_train_on_the_same_rows_and_are_scored(tmp_path):
    encoder, data = tmp_path / "encoder", tmp_path / "data" / "glue" / "SST-2"
    subprocess.run([str(peers.PYTHON), "-c", ENCODER, str(encoder)], check=True)
    (encoder / "vocab.txt").write_text("\n".join(
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]) + "\n")
    data.mkdir(parents=True)
    for split in ("train", "dev"):
        (data / f"{split}.tsv").write_text("".join(
            ["sentence\tlabel\n", *(f"a very {WORDS[index % 2]} film\t{index % 2}\n"
                                    for index in range(40))]))
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.real_encoder", f"--data_dir={tmp_path / 'data'}",
         f"--encoder={encoder}", "--tasks=sst2", "--seeds=1", f"--output_dir={tmp_path / 'out'}",
         f"--peers_python={peers.PYTHON}"],
        cwd=peers.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    runs = [json.loads(line) for line in (tmp_path / "out" / "runs.jsonl").read_text().splitlines()]
    assert [run["program"] for run in runs] == ["ours", "torch"]
    (path,) = (tmp_path / "out" / "ours_sst2_1" / "model" / "predictions").glob("*.jsonl")
    predicted = [json.loads(line)["prediction"] for line in path.read_text().splitlines()]
    # Every second film is dull, label 1.
    correct = [label == ("positive" if index % 2 else "negative")
               for index, label in enumerate(predicted)]
    assert runs[0]["score"] == pytest.approx(100.0 * sum(correct) / 40)
