"""The models are saved once, and one server of each runs for all tests of a file."""

import pytest

from tests.apps.serving import string_models
from tests.support import running


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """Directories of versions, by the model's name."""
    root = tmp_path_factory.mktemp("models")
    string_models.save_echo(root / "echo" / "1")
    string_models.save_texts(root / "texts" / "2")
    string_models.save_echo(root / "texts" / "1")
    string_models.save_numbers(root / "numbers" / "3")
    return root


def _client_of(name):
    def opened(models):
        with running.client(models / name) as client:
            yield client
    return pytest.fixture(opened, scope="module", name=name)


echo, texts, numbers = map(_client_of, ("echo", "texts", "numbers"))
