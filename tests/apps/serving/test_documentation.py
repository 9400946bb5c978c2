"""Every request in docs/serving.md gets an answer, and the one that is printed there."""

import contextlib
import json
import re
import shlex
from pathlib import Path

import pytest
import tensorflow as tf

from electra_tf.tasks import glue
from electra_tf.tasks.examples import Kind
from electra_tf.tasks.kinds.classification import ClassificationObjective
from electra_tf.tasks.task import TaskSpec
from tests.apps.serving import running, string_models
from tests.export.served_models import Example, tiny_detector

PAGE = (Path(__file__).parents[3] / "docs" / "serving.md").read_text(encoding="utf-8")


def requests():
    """Yields URL, body (None to get) and what is printed below, of every `curl` on the page."""
    blocks = re.findall(r"(?:^    .*\n)+", PAGE, re.MULTILINE)
    for block in blocks:
        lines = [line[4:] for line in block.splitlines()]
        while lines:
            words = None
            command = lines.pop(0)
            if not command.removeprefix("$ ").startswith("curl "):
                continue
            while words is None:
                try:
                    words = shlex.split(command.removesuffix("\\").removeprefix("$ "))
                    unfinished = command.endswith("\\")
                except ValueError:  # A quotation goes on.
                    unfinished = True
                if unfinished:
                    words, command = None, command.removesuffix("\\") + lines.pop(0)
            answer = []
            while lines and "curl " not in lines[0]:
                answer.append(lines.pop(0).strip())
            url = next(word for word in words if word.startswith("http"))
            body = words[words.index("-d") + 1] if "-d" in words else None
            yield url, body, " ".join(answer)


PREDICTIONS = [example for example in requests() if "/v1/models/" in example[0]]


def classifier(name):
    """Returns what would be exported of a task of GLUE with two classes."""
    example = Example(Kind.CLASSIFICATION)
    example.spec = TaskSpec.of_glue(glue.TASKS[name])
    example.model = ClassificationObjective(num_classes=2).build_model(
        example.config.model, seed=1, policy="float32")
    return example.served()


@pytest.fixture(scope="module")
def clients(tmp_path_factory):
    """A client by the model's name."""
    root = tmp_path_factory.mktemp("served")
    string_models.save_texts(root / "demo" / "1")
    for name, served in (("cola", classifier("cola")), ("mrpc", classifier("mrpc")),
                         ("detector", tiny_detector())):
        tf.saved_model.save(served, str(root / name / "1"), signatures=served.signatures())
    with contextlib.ExitStack() as stack:
        yield {path.name: stack.enter_context(running.client(path)) for path in root.iterdir()}


def test_the_page_has_requests_to_every_kind_of_model():
    names = {re.search(r"/v1/models/(\w+)", url)[1] for url, _, _ in PREDICTIONS}
    assert names == {"cola", "mrpc", "detector", "demo"}
    assert len(PREDICTIONS) >= 9


def test_requests_are_answered_as_printed(clients):
    for url, body, printed in PREDICTIONS:
        name, path = re.search(r"/v1/models/(\w+)(\S*)", url).groups()
        status, content = clients[name].send(
            "GET" if body is None else "POST", f"/v1/models/{name}{path}", body)
        assert status == (400 if '"error"' in printed else 200), (url, body, content)
        if printed:
            assert rounded(json.loads(content)) == rounded(json.loads(printed)), (url, body)


def rounded(value):
    """Returns JSON with its fractions as they are printed."""
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return list(map(rounded, value))
    return round(value, 5) if isinstance(value, float) else value


def test_grpc_asks_for_what_the_model_has():
    signature = classifier("cola").signatures()["serving_default"]
    (asked,) = re.findall(r'request\.inputs\["(\w+)"\]', PAGE)
    assert asked in {tensor.name.removesuffix(":0") for tensor in signature.inputs}
    assert set(re.findall(r'answer\.outputs\["(\w+)"\]', PAGE)) <= (
        signature.structured_outputs.keys())
