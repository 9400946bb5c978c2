"""The load test counts answers, and notices wrong ones."""

import asyncio

import pytest

from benchmarks.serving import load
from benchmarks.serving.load import Target, ask
from tests.apps.serving import running, string_models

TEXTS = ("a", "bb", "ccc")


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "texts"
    string_models.save_texts(path / "1")
    with running.client(path) as client:
        host, port = client.address.removeprefix("http://").split(":")
        yield Target(host=host, port=int(port), path=client.path)


async def expected(target):
    return {text: (await ask(target, [text]))[1][0] for text in TEXTS}


async def measured(target, clients, slow, change=lambda answers: answers):
    return await load.phase(target, change(await expected(target)), clients, slow, seconds=0.5)


def test_right_answers_are_counted_with_slow_clients_beside(target):
    tally = asyncio.run(measured(target, clients=4, slow=5))
    assert tally.statuses.keys() == {200} and tally.statuses[200] == len(tally.seconds) > 10
    assert tally.wrong == 0 and all(seconds > 0 for seconds in tally.seconds)


@pytest.mark.parametrize("change", [
    lambda answers: answers | {"a": ("other", answers["a"][1])},
    lambda answers: answers | {"a": (answers["a"][0], [0.5, 0.5, 0.5])}])
def test_wrong_answers_are_counted(target, change):
    tally = asyncio.run(measured(target, clients=1, slow=0, change=change))
    assert 0 < tally.wrong < tally.statuses[200]
