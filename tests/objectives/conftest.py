import pytest

from tests import tiny_records


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    directory = tmp_path_factory.mktemp("objectives") / "records"
    tiny_records.write(directory)
    return directory
