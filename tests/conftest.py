"""The CPU counts as two devices in every test process, so that replicas can be tried out.

GPUs are hidden: tests are of the CPU, on every machine.
"""

import atexit
import os
import shutil
import tempfile

if "PYTEST_XDIST_WORKER" not in os.environ:  # Killed processes leave TensorFlow's generated files.
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
    os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(prefix="electra-tests-")
    atexit.register(shutil.rmtree, tempfile.tempdir, ignore_errors=True)
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["HF_HUB_OFFLINE"] = "1"  # No test reaches another machine.
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import pytest
import tensorflow as tf

from tests import tiny_records

# At import: TensorFlow refuses it once a test module has made a tensor.
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2)


@pytest.fixture(scope="session")
def records(tmp_path_factory):
    """Returns the directory of `tiny_records`, which tests only read."""
    directory = tmp_path_factory.mktemp("tiny") / "records"
    tiny_records.write(directory)
    return directory
