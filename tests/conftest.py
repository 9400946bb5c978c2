"""The CPU counts as two devices in every test process, so that replicas can be tried out.

GPUs are hidden: tests are of the CPU, on every machine.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["HF_HUB_OFFLINE"] = "1"  # No test reaches another machine.
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import tensorflow as tf

# At import: TensorFlow refuses it once a test module has made a tensor.
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2)
