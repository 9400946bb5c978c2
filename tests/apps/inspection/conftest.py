import pytest

from electra_tf.apps.inspection.survey import MaskedExample, MaskedPiece, take_survey
from electra_tf.data.records import Shard
from electra_tf.platform import storage
from tests.support import tiny_records


@pytest.fixture
def data_dir(tmp_path):
    """86 training examples in three shards and 10 held out, of 32 tokens at most."""
    tiny_records.write(tmp_path / "records")
    return storage.path(tmp_path / "records")


@pytest.fixture(scope="session")
def survey(records):
    """The survey of such records."""
    return take_survey(storage.path(records))


@pytest.fixture(scope="session")
def example_of():
    """example_of(*tokens): an example whose second segment begins at `border`, with one draw."""
    def example(*tokens, read, name="a", border=4):
        shard = Shard(name=name, split="train", examples=1, tokens=8, bytes=9, sha256="0" * 64)
        return MaskedExample(shard=shard, number=0, pieces=tuple(
            MaskedPiece(token=token, segment=int(index >= border), read=(read.get(index),))
            for index, token in enumerate(tokens)))
    return example
