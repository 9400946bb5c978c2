"""Pseudo-likelihoods, compared with sums computed one token at a time, and the printed scores."""

import gzip
import io
import json

import numpy as np
import pytest
import tensorflow as tf
from absl import flags

from electra_tf.apps.tools import score_text
from electra_tf.apps.tools.pseudo_likelihood import PseudoLikelihood
from electra_tf.checkpoints.weights import assign_weights
from electra_tf.core.errors import UserError
from electra_tf.formats import pretrained
from electra_tf.formats.parts import build_networks
from electra_tf.objectives.electra import ElectraLmModel
from tests.support import command_flags, tiny_networks
from tests.support.refusals import refused

SENTENCES = ["word1 word2", "word3 word4 word5", "word9", "word6 word7 word8 word1",
             *(f"word{index} word{index + 1}" for index in range(20))]


def ids_of(sentence):
    vocabulary = tiny_networks.VOCABULARY
    return [vocabulary.cls_id, *(vocabulary.tokens.index(word) for word in sentence.split()),
            vocabulary.sep_id]


@pytest.fixture(scope="module")
def scores(run):
    return PseudoLikelihood(pretrained.read(run)).score(SENTENCES)


def require_masked_scores(scores, logits_of):
    """Fails unless scores are sums of ln p; `logits_of(row, position)` float [V'] is computed
    for one row [1, L] with one [MASK] at a time.
    """
    for sentence, score in zip(SENTENCES[:4], scores, strict=False):
        ids, expected = ids_of(sentence), 0.0
        for position in range(1, len(ids) - 1):
            row = np.array([ids], np.int32)
            row[0, position] = tiny_networks.VOCABULARY.mask_id
            logits = logits_of(tf.constant(row), position).numpy()[0].astype(float)
            expected += logits[ids[position]] - np.log(np.exp(logits).sum())
        assert score == pytest.approx(expected, rel=1e-4)


def test_the_generator_score_hides_each_token_in_turn(checkpoint, scores):
    model = build_networks(checkpoint)
    require_masked_scores(scores["generator"], lambda row, position: model.generator(
        row, tf.zeros_like(row), tf.ones_like(row, tf.bool), tf.constant([[position]])))


def test_the_restorer_score_hides_each_token_from_the_discriminators_encoder(checkpoint, scores):
    checkpoint = tiny_networks.with_restorer(checkpoint)
    restorer = PseudoLikelihood(checkpoint)
    assert restorer.networks == (*scores, "restorer") and restorer.best == "generator"
    model = ElectraLmModel(checkpoint.config, seed=0)
    assign_weights(model.variables, checkpoint.weights, "")
    only = restorer.score(SENTENCES, networks=["restorer"])
    require_masked_scores(only["restorer"], lambda row, position: model.restorer_head(
        model.discriminator.encode(row, tf.zeros_like(row), tf.ones_like(row, tf.bool))[
            :, position]))
    assert only.keys() == {"restorer"}
    every = restorer.score(SENTENCES)
    assert all((every[name] == values).all() for name, values in (scores | only).items())
    masked_lm = tiny_networks.without(checkpoint, "generator", "discriminator_pred")
    assert PseudoLikelihood(masked_lm).score(SENTENCES)["restorer"] == pytest.approx(
        only["restorer"])


def test_the_discriminator_score_reads_the_sentence_once(checkpoint, scores):
    electric = PseudoLikelihood(tiny_networks.without(
        checkpoint, "generator", objective="electric"))
    assert electric.best == "discriminator" and electric.networks == ("discriminator",)
    energies, model = electric.score(SENTENCES)["discriminator"], build_networks(checkpoint)
    for sentence, score, energy in zip(SENTENCES[:4], scores["discriminator"], energies,
                                       strict=False):
        row = tf.constant([ids_of(sentence)], tf.int32)
        logits = model.discriminator(
            row, tf.zeros_like(row), tf.ones_like(row, tf.bool)).numpy()[0, 1:-1].astype(float)
        assert score == pytest.approx(np.log(1 - 1 / (1 + np.exp(-logits))).sum(), rel=1e-4)
        assert energy == pytest.approx(-logits.sum(), rel=1e-4)  # Electric's logits are energies.


def test_networks_without_output_layers_are_left_out(checkpoint):
    discriminator = tiny_networks.without(checkpoint, "generator")
    assert PseudoLikelihood(discriminator).networks == ("discriminator",)
    with pytest.raises(UserError, match="no output layer of a generator or discriminator"):
        PseudoLikelihood(tiny_networks.without(discriminator, "discriminator"))


def lines_of(capsys, **options):
    command_flags.run(score_text, *(
        f"--{name}={value}" for name, value in options.items() if value is not None))
    head, *lines = capsys.readouterr().out.splitlines()
    return head.split("\t"), [line.split("\t") for line in lines]


def test_sentences_are_printed_likeliest_first(run, scores, tmp_path, capsys):
    (tmp_path / "in.txt").write_text("\n".join([*SENTENCES[:2], "", *SENTENCES[2:4]]) + "\n")
    for network in (None, "generator", "discriminator"):
        head, lines = lines_of(capsys, model_dir=str(run), input=str(tmp_path / "in.txt"),
                               network=network)
        assert head == ["generator", "discriminator", "sentence"]
        order = [float(line[head.index(network or "generator")]) for line in lines]
        assert order == sorted(order, reverse=True) and len(order) == 4
        for *printed, sentence in lines:
            number = SENTENCES.index(sentence)
            assert [float(value) for value in printed] == pytest.approx(
                [scores["generator"][number], scores["discriminator"][number]], abs=6e-4)


def test_scores_per_token_of_standard_input(run, scores, capsys, monkeypatch):
    text = "\n".join(SENTENCES)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    _, lines = lines_of(capsys, model_dir=str(run), input="-", per_token=True)
    assert len(lines) == len(SENTENCES)
    for line in lines:
        number = SENTENCES.index(line[2])
        assert float(line[0]) == pytest.approx(
            scores["generator"][number] / len(SENTENCES[number].split()), abs=6e-4)


@pytest.mark.parametrize(("content", "words"), [
    (b"\n \n", "holds no sentences"), (b"\xff\xfe", "is UTF-16; convert it"),
    (b"word1 " * 40, "40 tokens, and the model reads 1 to 30"),
    ("word1\n\u200b\n".encode(), r"0 tokens, .* remove it: '\\u200b'")])
def test_unusable_input_is_refused(run, tmp_path, capsys, content, words):
    (tmp_path / "in.txt").write_bytes(content)
    with pytest.raises(UserError, match=words):
        lines_of(capsys, model_dir=str(run), input=str(tmp_path / "in.txt"))


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl", "a.json.gz"])
def test_a_table_is_not_scored_as_lines_of_text(run, tmp_path, name):
    with refused(f"{name} is a table, .*one sentence per line"):
        command_flags.run(score_text, f"--model_dir={run}", f"--input={tmp_path / name}")


def write_pairs(path, *pairs):
    content = "".join(json.dumps({"sentence_good": good, "sentence_bad": bad, "pairID": "0"}) + "\n"
                      for good, bad in pairs).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def test_accuracies_of_pairs_are_saved_for_every_paradigm(run, scores, tmp_path, capsys):
    low, high = (SENTENCES[index] for index in np.argsort(scores["generator"])[[0, -1]])
    write_pairs(tmp_path / "b.jsonl", (high, low), *[(low, high)] * 3)
    write_pairs(tmp_path / "a.jsonl.gz", (high, low))
    head, *_ = lines_of(capsys, model_dir=run, blimp=tmp_path, output_dir=tmp_path / "new" / "out")
    assert head[0].startswith(f"BLiMP, zero-shot: {run}, step 0")
    results = json.loads((tmp_path / "new" / "out" / score_text.BLIMP_RESULTS).read_text())
    assert {name: accuracies["generator"] for name, accuracies in results["paradigms"].items()} == {
        "a": 1.0, "b": 0.25}
    assert results["mean"]["generator"] == 0.625 and "discriminator" in results["mean"]
    lines = lines_of(capsys, model_dir=run, blimp=tmp_path, network="generator")[1]
    assert [line[0].split() for line in lines[2:]] == [
        ["a", "1", "100.0", "%"], ["b", "4", "25.0", "%"], ["mean", "of", "2", "5", "62.5", "%"]]


def test_pairs_are_compared_per_token_on_request(run, scores, tmp_path, capsys):
    # Of a short and a long sentence, the sum and the mean prefer different ones.
    words = np.array([len(sentence.split()) for sentence in SENTENCES])
    sums = scores["generator"]
    first, second = next((first, second) for first in range(len(words)) for second in range(
        len(words)) if sums[first] > sums[second]
        and sums[first] / words[first] < sums[second] / words[second])
    write_pairs(tmp_path / "a.jsonl", (SENTENCES[first], SENTENCES[second]))
    for options, accuracy in (({}, "100.0"), ({"per_token": True}, "0.0")):
        _, lines = lines_of(capsys, model_dir=run, blimp=tmp_path, network="generator", **options)
        assert lines[-1][0].split()[-2] == accuracy


def test_pairs_of_equal_scores_are_noted(run, tmp_path, capsys):
    write_pairs(tmp_path / "a.jsonl", ("word1", "word1"), ("word1 word2", "word3"))
    command_flags.run(score_text, f"--model_dir={run}", f"--blimp={tmp_path}")
    assert "a: 1 of 2 pairs have equal scores, and count as wrong" in capsys.readouterr().err


def test_unusable_files_of_pairs_are_refused(run, tmp_path):
    (tmp_path / "c.jsonl").write_text('{"sentence_good": "He runs."}\n')
    for blimp, words in ((tmp_path, r"c.jsonl:1: .*sentence_bad"),
                         (tmp_path / "none", "holds no .jsonl files"),
                         (tmp_path / "c.jsonl", "holds no .jsonl files")):
        with pytest.raises(UserError, match=words):
            command_flags.run(score_text, f"--model_dir={run}", f"--blimp={blimp}")
    with pytest.raises(flags.Error, match="input, blimp"):
        command_flags.run(score_text, f"--model_dir={run}")
    with pytest.raises(UserError, match="--output_dir is for --blimp"):
        command_flags.run(score_text, f"--model_dir={run}", f"--input={tmp_path / 'c.jsonl'}",
                          f"--output_dir={tmp_path / 'out'}")
