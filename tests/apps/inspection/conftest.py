import pytest

from electra_tf.apps.inspection import survey
from electra_tf.platform import storage
from tests.support import tiny_records


@pytest.fixture
def data_dir(tmp_path):
    """86 training examples in three shards and 10 held out, of 32 tokens at most."""
    tiny_records.write(tmp_path / "records")
    return storage.path(tmp_path / "records")


@pytest.fixture(scope="session")
def found(records):
    """What is found in such records."""
    return survey.survey(survey.open_records(storage.path(records)))
