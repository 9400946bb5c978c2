"""Sentences come in the order of their scores, and pairs are counted per paradigm."""

import json
import os

import numpy as np
import pytest
from absl import flags

from electra_tf.apps.tools import score_text
from electra_tf.apps.tools.pseudo_likelihood import PseudoLikelihood
from electra_tf.formats import pretrained
from electra_tf.platform.errors import UserError
from tests.support import command_flags

SENTENCES = ["word1 word2", "word3 word4 word5", "word9", "word6 word7 word8 word1"]


def lines_of(capsys, **given):
    command_flags.run(score_text, *(
        f"--{name}={value}" for name, value in given.items() if value is not None))
    head, *lines = capsys.readouterr().out.splitlines()
    return head.split("\t"), [line.split("\t") for line in lines]


def test_sentences_come_likeliest_first(run, tmp_path, capsys):
    (tmp_path / "in.txt").write_text("\n".join([*SENTENCES[:2], "", *SENTENCES[2:]]) + "\n")
    scores = PseudoLikelihood(pretrained.read(run)).score(SENTENCES)
    for network in (None, "generator", "discriminator"):
        head, lines = lines_of(capsys, model_dir=str(run), input=str(tmp_path / "in.txt"),
                               network=network)
        assert head == ["generator", "discriminator", "sentence"]
        order = [float(line[head.index(network or "generator")]) for line in lines]
        assert order == sorted(order, reverse=True)
        for *found, sentence in lines:
            number = SENTENCES.index(sentence)
            assert [float(value) for value in found] == pytest.approx(
                [scores["generator"][number], scores["discriminator"][number]], abs=6e-4)


def test_scores_per_token_of_standard_input(run, tmp_path, capsys):
    (tmp_path / "in.txt").write_text("\n".join(SENTENCES))
    kept, given = os.dup(0), os.open(tmp_path / "in.txt", os.O_RDONLY)
    os.dup2(given, 0)
    _, lines = lines_of(capsys, model_dir=str(run), input="-", per_token=True)
    os.dup2(kept, 0)
    scores = PseudoLikelihood(pretrained.read(run)).score(SENTENCES)["generator"]
    for line in lines:
        number = SENTENCES.index(line[2])
        assert float(line[0]) == pytest.approx(
            scores[number] / len(SENTENCES[number].split()), abs=6e-4)


def test_mistakes_are_named(run, tmp_path, capsys):
    for content, given, words in (
            (b"", {}, "holds no sentences"), (b"\n \n", {}, "holds no sentences"),
            (b"\xff\xfe", {}, "is UTF-16; convert it"),
            (b"word1 " * 40, {}, "42 tokens; the model reads 32"),
            (b"word1", {"input": str(tmp_path / "nowhere.txt")}, "nowhere.txt"),
            (b"word1", {"network": "judge"}, "--network=judge.*generator and discriminator")):
        (tmp_path / "in.txt").write_bytes(content)
        with pytest.raises(UserError, match=words):
            lines_of(capsys, **{"model_dir": str(run), "input": str(tmp_path / "in.txt")} | given)


def pairs_file(path, *pairs):
    path.write_text("".join(json.dumps(
        {"sentence_good": good, "sentence_bad": bad, "pairID": "0"}) + "\n" for good, bad in pairs))


def test_pairs_are_counted_for_every_paradigm(run, tmp_path, capsys):
    scores = PseudoLikelihood(pretrained.read(run)).score(SENTENCES)["generator"]
    low, high = (SENTENCES[index] for index in np.argsort(scores)[[0, -1]])
    pairs_file(tmp_path / "b.jsonl", (high, low), *[(low, high)] * 3)
    pairs_file(tmp_path / "a.jsonl", (high, low))
    head, *_ = lines_of(capsys, model_dir=run, blimp=tmp_path, output_dir=tmp_path / "new" / "out")
    assert head[0].startswith(f"BLiMP, zero-shot: {run}, step 0")
    saved = json.loads((tmp_path / "new" / "out" / score_text.BLIMP_RESULTS).read_text())
    assert {name: one["generator"] for name, one in saved["paradigms"].items()} == {
        "a": 1.0, "b": 0.25}
    assert saved["mean"]["generator"] == 0.625 and "discriminator" in saved["mean"]


def test_pairs_are_read_by_name_and_bad_files_refused(run, tmp_path):
    for name, good in (("b", "He runs."), ("a", "She runs.")):
        pairs_file(tmp_path / f"{name}.jsonl", (good, "He run."))
    found = score_text.read_pairs(tmp_path)
    assert list(found) == ["a", "b"] and found["a"] == [("She runs.", "He run.")]
    (tmp_path / "c.jsonl").write_text('{"sentence_good": "He runs."}\n')
    with pytest.raises(UserError, match=r"c.jsonl:1: .*sentence_bad"):
        score_text.read_pairs(tmp_path)
    for empty in (tmp_path / "none", tmp_path / "c.jsonl"):
        with pytest.raises(UserError, match="holds no .jsonl files"):
            score_text.read_pairs(empty)
    with pytest.raises(flags.Error, match="input, blimp"):
        command_flags.run(score_text, f"--model_dir={run}")
