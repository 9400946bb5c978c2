import pytest

from electra_tf.export import conversion


@pytest.fixture(scope="session")
def run(networks, tmp_path_factory):
    """A run of pre-training; read only."""
    directory = tmp_path_factory.mktemp("runs") / "tiny"
    conversion.write(networks, directory, conversion.Format.RUN)
    return directory
