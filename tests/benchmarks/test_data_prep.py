"""The data preparation benchmark's table and cuts; two workers run in the command's own test."""

import json
import subprocess
import sys

import pytest

from benchmarks.data_prep.__main__ import MODEL_GARDEN, Measurement, _parts, table
from electra_tf.platform.errors import UserError
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary


def test_ratios_are_to_model_garden_on_as_many_cores():
    measured = [
        Measurement(system="full", label="ours", cores=1, seconds=[1.0, 2.0, 4.0],
                    cpu_seconds=[1.0, 1.0, 1.0], start_cpu_seconds=3.0, peak_bytes=8e8,
                    text_tokens=500_000, bytes=1_000_000),
        Measurement(system="hf", label="hf", cores=1, failure="out of luck"),
        Measurement(system=MODEL_GARDEN, label="garden", cores=2, seconds=[7.0], cpu_seconds=[9.0]),
        Measurement(system=MODEL_GARDEN, label="garden", cores=1, seconds=[30.0],
                    cpu_seconds=[20.0], bytes=3_000_000)]
    lines = table(measured, text_bytes=2_000_000, max_seq_length=128).splitlines()
    assert lines[0] == "2.0 MB of text, 500,000 tokens, examples of 128"
    assert lines[4] == ("| ours | 1 | 1.00 (0.50 to 2.00) | 0.25 | 15.0 | 2.00 | 20.0 | 2.00 "
                        "| 3.0 | 0.80 |")
    assert "failed: out of luck" in lines[5]
    assert lines[7].startswith("| garden | 1 | 0.07 (0.07 to 0.07) | 0.02 | 1.0 | 40.00 | 1.0 |")


def test_a_text_is_cut_between_documents_into_files_of_about_equal_size(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("".join(f"{index:04d} words\nmore\n\n" for index in range(100)))
    paths = _parts(str(text), 800, 2, tmp_path)
    cut = [path.read_text() for path in paths]
    assert text.read_text().startswith("".join(cut).replace("\n\n\n", "\n\n"))
    assert all(part.startswith("00") and part.endswith("more\n\n\n") for part in cut)
    assert 0.9 < len(cut[0]) / len(cut[1]) < 1.1
    with pytest.raises(UserError, match="too few documents for 200 parts"):
        _parts(str(text), 800, 200, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name, packing", [("ours", "full"), ("model_garden", "")])
def test_a_worker_makes_records(tmp_path, name, packing):
    Vocabulary((*SPECIAL_TOKENS, "some", "words")).save(tmp_path / "vocab.txt")
    (tmp_path / "text.txt").write_text("some words\nwords\n\n" * 40)
    requests = [{"vocab_file": str(tmp_path / "vocab.txt"), "max_seq_length": 16,
                 "packing": packing}, {"text": str(tmp_path / "text.txt")}]
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.data_prep.{name}"], text=True, capture_output=True,
        input="".join(json.dumps(one) + "\n" for one in requests), timeout=300, check=True)
    hello, reply = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert hello["start_cpu_seconds"] > 0
    assert reply["bytes"] > 1000
    assert reply["text_tokens"] == (120 if name == "ours" else None)
