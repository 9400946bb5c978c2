"""Records that all tests of pre-training read."""

import pytest

from tests import tiny_records


@pytest.fixture(scope="session")
def records(tmp_path_factory):
    directory = tmp_path_factory.mktemp("pretraining") / "records"
    tiny_records.write(directory)
    return directory
