"""The CPU counts as two devices in every test process, so that replicas can be tried out.

GPUs are hidden: tests are of the CPU, on every machine.
"""

import atexit
import gc
import os
import shutil
import tempfile

import pytest

from electra_tf.core import machine

if "PYTEST_XDIST_WORKER" not in os.environ:  # Killed processes leave TensorFlow's generated files.
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
    os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(prefix="electra-tests-")
    atexit.register(shutil.rmtree, tempfile.tempdir, ignore_errors=True)
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
machine.configure_libraries()  # Tests multiply with the library that commands use.
os.environ["HF_HUB_OFFLINE"] = "1"  # No test reaches another machine.
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")


def pytest_configure(config):
    """Sets the devices before test modules make tensors; TensorFlow refuses it afterwards."""
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        return  # This process only hands out the tests.
    import tensorflow as tf
    from tensorflow.python.data.ops.dataset_ops import DatasetV2

    # Before an iterator is freed, its autotuner may sleep for 60 s more: the thread is woken before
    # it can see that it was cancelled. TensorFlow calls this hook for every iterator.
    DatasetV2._apply_debug_options = _without_autotuning
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2)


def _without_autotuning(dataset):
    import tensorflow as tf

    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)


def pytest_collection_finish():
    """Exempts the imported libraries, about a million objects, from every garbage collection.

    Collections, which took a seventh of the time of tests, run every 50,000 objects, not 700.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)


@pytest.fixture(scope="session")
def records(tmp_path_factory):
    """Returns the directory of `tiny_records`, which tests only read."""
    from tests.support import tiny_records

    directory = tmp_path_factory.mktemp("tiny") / "records"
    tiny_records.write(directory)
    return directory


@pytest.fixture(scope="session")
def checkpoint():
    from tests.support import tiny_networks

    return tiny_networks.pretrained()


@pytest.fixture
def pair(checkpoint, tmp_path):
    """A directory of Hugging Face's with the two networks."""
    from electra_tf.formats import pretrained

    pretrained.write(checkpoint, tmp_path / "pair", pretrained.Format.HUGGING_FACE)
    return tmp_path / "pair"
