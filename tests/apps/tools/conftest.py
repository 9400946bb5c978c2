import pytest

from electra_tf.formats import pretrained


@pytest.fixture(scope="session")
def run(checkpoint, tmp_path_factory):
    """A run of pre-training; read only."""
    directory = tmp_path_factory.mktemp("runs") / "tiny"
    pretrained.write(checkpoint, directory, pretrained.Format.RUN)
    return directory
