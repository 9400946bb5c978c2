"""The data preparation benchmark's table and text; two workers make records."""

import json
import subprocess
import sys

import pytest

from benchmarks.data_prep.__main__ import table, write_beginning
from benchmarks.harness.turns import Measurement, Role, System
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary


def measured(name, role, seconds, **fields):
    return Measurement(
        system=System(name=name, title=name, module="", role=role), label=name, turns={"text": [
            {"seconds": one, "peak_bytes": 8e8, **fields} for one in seconds]})


def test_speeds_are_of_the_texts_bytes_and_tokens():
    lines = table([
        measured("ours", Role.OURS, [1.0, 2.0, 4.0], bytes=10**6, text_tokens=500_000),
        measured("hf", Role.PEER, [8.0], text_tokens=500_001),
        measured("mg", Role.PEER, [30.0], bytes=2 * 10**6)], text_bytes=2_000_000)
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    assert cells == [
        ["ours", "1.00 (0.50 to 2.00)", "4.00", "0.25", "2.00", "0.80"],
        ["hf", "0.25 (0.25 to 0.25)", "1.00", "0.06", "-", "0.80"],
        ["mg", "0.07 (0.07 to 0.07)", "0.27", "0.02", "4.00", "0.80"]]


def test_the_beginning_of_a_text_has_whole_documents(tmp_path):
    text, beginning = tmp_path / "text.txt", tmp_path / "beginning.txt"
    text.write_text("".join(f"{index:04d} words\nmore\n\n" for index in range(100)))
    write_beginning(str(text), 800, beginning)
    written = beginning.read_text()
    assert text.read_text().startswith(written.replace("\n\n\n", "\n\n"))
    assert 800 <= len(written) < 820 and written.endswith("more\n\n\n")


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
    _, reply = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert reply["bytes"] > 1000
    assert reply.get("text_tokens") == (120 if name == "ours" else None)
