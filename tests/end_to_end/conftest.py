"""Records and an encoder of tiny networks; tests that change them work on copies."""

import pytest

from tests import tiny_encoder, tiny_records


@pytest.fixture(scope="session")
def records(tmp_path_factory):
    directory = tmp_path_factory.mktemp("end_to_end") / "records"
    tiny_records.write(directory)
    return directory


@pytest.fixture(scope="session")
def encoder(tmp_path_factory):
    directory = tmp_path_factory.mktemp("encoder")
    tiny_encoder.write(directory)
    return directory
