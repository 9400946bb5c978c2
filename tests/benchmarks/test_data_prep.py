"""The data preparation benchmark's table and cuts; two workers run in the command's own test."""

import json
import subprocess
import sys

import pytest

from benchmarks.data_prep.__main__ import MODEL_GARDEN, parts, table
from benchmarks.harness.turns import Measurement, Role, System
from electra_tf.platform.errors import UserError
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary


def measured(system, role, turns, **fields):
    """Turns: cores -> (seconds, CPU seconds) of every round."""
    return Measurement(
        system=System(name=system, title=system, module="", role=role), label=system, **fields,
        turns={cores: [{"seconds": seconds, "cpu_seconds": cpu, "peak_bytes": 8e8, "bytes": 10**6,
                        "text_tokens": 500_000} for seconds, cpu in rounds]
               for cores, rounds in turns.items()})


def test_ratios_are_to_model_garden_on_as_many_cores():
    lines = table([
        measured("ours", Role.OURS, {"1": [(1.0, 1.0), (2.0, 1.0), (4.0, 1.0)], "2": [(1.0, 2.0)]},
                 start_cpu_seconds=3.0),
        measured("hf", Role.PEER, {"1": [(1.0, 1.0)]}, failure="out of luck"),
        measured(MODEL_GARDEN, Role.PEER, {"1": [(30.0, 20.0)], "2": [(7.0, 9.0)]})],
        ["1", "2"], text_bytes=2_000_000)
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    assert cells[0] == ["ours", "1", "1.00 (0.50 to 2.00)", "0.25", "15.0", "2.00", "20.0", "2.00",
                        "3.0", "0.80"]
    assert cells[1][4:7] == ["7.0", "4.00", "4.5"]
    assert cells[2][2:5] == ["-", "-", "-"] and cells[4][4] == "1.0"


def test_a_text_is_cut_between_documents_into_files_of_about_equal_size(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("".join(f"{index:04d} words\nmore\n\n" for index in range(100)))
    paths = parts(str(text), 800, 2, tmp_path)
    cut = [path.read_text() for path in paths]
    assert text.read_text().startswith("".join(cut).replace("\n\n\n", "\n\n"))
    assert all(part.startswith("00") and part.endswith("more\n\n\n") for part in cut)
    assert 0.9 < len(cut[0]) / len(cut[1]) < 1.1
    with pytest.raises(UserError, match="too few documents for 200 parts"):
        parts(str(text), 800, 200, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "settings"), [
    ("ours", {"packing": "full"}), ("model_garden", {})])
def test_a_worker_makes_records(tmp_path, name, settings):
    Vocabulary((*SPECIAL_TOKENS, "some", "words")).save(tmp_path / "vocab.txt")
    (tmp_path / "text.txt").write_text("some words\nwords\n\n" * 40)
    requests = [{"vocab_file": str(tmp_path / "vocab.txt"), "max_seq_length": 16,
                 **settings}, {"text": str(tmp_path / "text.txt")}]
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.data_prep.{name}"], text=True, capture_output=True,
        input="".join(json.dumps(one) + "\n" for one in requests), timeout=300, check=True)
    hello, reply = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert hello["start_cpu_seconds"] > 0
    assert reply["bytes"] > 1000
    assert reply.get("text_tokens") == (120 if name == "ours" else None)
