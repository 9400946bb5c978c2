"""The models are saved once, and one server of each runs for all tests of a file."""

import pytest

from tests.apps.serving import running, string_models


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """Directories of versions, by the model's name."""
    root = tmp_path_factory.mktemp("models")
    string_models.save_echo(root / "echo" / "1")
    string_models.save_texts(root / "texts" / "2")
    string_models.save_echo(root / "texts" / "1")
    string_models.save_numbers(root / "numbers" / "3")
    return root


@pytest.fixture(scope="module")
def echo(models):
    with running.client(models / "echo") as client:
        yield client


@pytest.fixture(scope="module")
def texts(models):
    with running.client(models / "texts") as client:
        yield client


@pytest.fixture(scope="module")
def numbers(models):
    with running.client(models / "numbers") as client:
        yield client
