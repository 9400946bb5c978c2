"""The CPU counts as two devices in every test process, so that replicas can be tried out.

GPUs are hidden: tests are of the CPU, on every machine.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["HF_HUB_OFFLINE"] = "1"  # No test reaches another machine.
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import pytest
import tensorflow as tf

# At import: TensorFlow refuses it once a test module has made a tensor.
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2)


@pytest.fixture(scope="session")
def records(tmp_path_factory):
    """Returns the directory of `tiny_records`, which tests only read."""
    from tests import tiny_records

    directory = tmp_path_factory.mktemp("tiny") / "records"
    tiny_records.write(directory)
    return directory
