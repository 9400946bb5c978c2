import io
import sys

import pytest

from electra_tf.apps.tools import score_text
from electra_tf.checkpoints import formats
from electra_tf.finetuning.pseudo_likelihood import PseudoLikelihood
from electra_tf.platform import storage
from electra_tf.platform.errors import UserError
from tests import command_flags, tiny_networks

SENTENCES = ["word1 word2", "word3 word4 word5", "word9", "word6 word7 word8 word1"]


@pytest.fixture(autouse=True)
def program_flags():
    with command_flags.defined(score_text.define):
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = storage.path(tmp_path_factory.mktemp("networks") / "run")
    formats.write(tiny_networks.pretrained(), path, formats.Format.RUN)
    return path


def lines_of(capsys, **given):
    command_flags.call(score_text.main, *(
        f"--{name}={value}" for name, value in given.items() if value is not None))
    head, *lines = capsys.readouterr().out.splitlines()
    return head.split("\t"), [line.split("\t") for line in lines]


@pytest.mark.parametrize("network", [None, "generator", "discriminator"])
def test_sentences_come_likeliest_first(run, tmp_path, capsys, network):
    (tmp_path / "in.txt").write_text("\n".join([*SENTENCES[:2], "", *SENTENCES[2:]]) + "\n")
    head, lines = lines_of(capsys, model_dir=str(run), input=str(tmp_path / "in.txt"),
                           network=network)
    assert head == ["generator", "discriminator", "sentence"]
    column = head.index(network or "generator")
    order = [float(line[column]) for line in lines]
    assert order == sorted(order, reverse=True)
    scores = PseudoLikelihood(formats.read(run)).score(SENTENCES)
    for line in lines:
        number = SENTENCES.index(line[2])
        assert [float(value) for value in line[:2]] == pytest.approx(
            [scores["generator"][number], scores["discriminator"][number]], abs=6e-4)


def test_scores_per_token(run, monkeypatch, capsys):
    text = "\n".join(SENTENCES)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    _, lines = lines_of(capsys, model_dir=str(run), input="-", per_token=True)
    scores = PseudoLikelihood(formats.read(run)).score(SENTENCES)["generator"]
    for line in lines:
        number = SENTENCES.index(line[2])
        assert float(line[0]) == pytest.approx(
            scores[number] / len(SENTENCES[number].split()), abs=6e-4)


@pytest.mark.parametrize(("content", "problem"), [
    (b"", "holds no sentences"), (b"\n \n", "holds no sentences"),
    (b"\xff\xfe", "is not UTF-8"), (b"word1 " * 40, "42 tokens; the model reads 32")])
def test_texts_that_cant_be_scored_are_one_line(run, tmp_path, capsys, content, problem):
    (tmp_path / "in.txt").write_bytes(content)
    with pytest.raises(UserError, match=problem):
        lines_of(capsys, model_dir=str(run), input=str(tmp_path / "in.txt"))


def test_what_is_missing_is_said(run, tmp_path, capsys):
    with pytest.raises(UserError, match="--model_dir is needed"):
        lines_of(capsys, input="-")
    with pytest.raises(UserError, match="nowhere.txt"):
        lines_of(capsys, model_dir=str(run), input=str(tmp_path / "nowhere.txt"))
    (tmp_path / "in.txt").write_text("word1\n")
    with pytest.raises(UserError, match="--network=judge: this model has generator and discrimin"):
        lines_of(capsys, model_dir=str(run), input=str(tmp_path / "in.txt"), network="judge")
