"""Tiny networks behind the Python interface, and a hub that has them under published names."""

import pytest

import electra_tf
from electra_tf.formats import pretrained
from electra_tf.formats.pretrained import Format
from electra_tf.tasks.task import Kind
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from electra_tf.training import strategies
from tests.support import hub_server, tiny_networks

WORDS = ("the", "chef", "ate", "cook", "##ed", "meal", "piano", ".", "text", "first", "second")
HEADS = {Kind.CLASSIFICATION: (("negative", "positive"), {"dense": 2}, {}),
         Kind.TAGGING: (("O", "B-FOOD"), {"dense": 2}, {}),
         Kind.QUESTION_ANSWERING: ((), {"dense": 1, "dense_1": 1}, {
             **tiny_networks.NO_ANSWERABILITY, "task.max_query_length": 8, "task.doc_stride": 8})}
"""Kind -> labels, dense layers and settings of a head."""


@pytest.fixture(autouse=True, scope="module")
def one_part():
    """Computes batches in one part on any number of cores, as every part is traced."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strategies, "MAX_PARTS", 1)
        yield


@pytest.fixture(scope="session")
def checkpoint():
    return tiny_networks.pretrained(
        Vocabulary((*SPECIAL_TOKENS, *WORDS)), model__generator_width=1.0, model__num_layers=1)


@pytest.fixture(scope="session")
def directory(checkpoint, tmp_path_factory):
    path = tmp_path_factory.mktemp("api") / "run"
    pretrained.write(checkpoint, path, Format.RUN)
    return path


@pytest.fixture(scope="session")
def electra(directory):
    return electra_tf.load(str(directory))


@pytest.fixture(scope="session")
def task_directories(checkpoint, tmp_path_factory):
    """Directory of a fine-tuned model for each kind in `HEADS`."""
    folder = tmp_path_factory.mktemp("tasks")
    for kind, (labels, head, settings) in HEADS.items():
        pretrained.write(tiny_networks.finetuned(
            checkpoint, kind, labels, head, settings=settings), folder / kind, Format.RUN)
    return {kind: folder / kind for kind in HEADS}


@pytest.fixture
def hub(pair, tmp_path, monkeypatch):
    """Serves the networks as google/electra-small-discriminator and -generator."""
    with hub_server.running(monkeypatch, tmp_path) as server:
        server.models = {f"google/electra-small-{name}": pair / name
                         for name in ("discriminator", "generator")}
        yield server
