import pytest

from electra_tf.export import conversion
from electra_tf.export.conversion import Format
from tests import tiny_networks


@pytest.fixture(scope="session")
def networks():
    return tiny_networks.pretrained()


@pytest.fixture
def pair(networks, tmp_path):
    """A directory of Hugging Face's with the two networks."""
    conversion.write(networks, tmp_path / "out", Format.HUGGING_FACE)
    return tmp_path / "out"
