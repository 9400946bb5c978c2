"""A TPU that isn't there: everything is traced for it and nothing can run on it.

`TPUStrategy` needs the names of a TPU's cores, and a place for its variables. Here a logical CPU is
the place for those of a core.
"""

import collections
from types import SimpleNamespace

import numpy as np
import tensorflow as tf

from electra_tf.config.runtime import RuntimeConfig
from electra_tf.training.strategies import create_strategy


def strategy(monkeypatch) -> tf.distribute.TPUStrategy:
    """What --tpu=local gives on a machine with a TPU core for every logical CPU of this one."""
    cpus = [device.name for device in tf.config.list_logical_devices("CPU")]
    cores = [name.replace("CPU", "TPU") for name in cpus]
    real = tf.distribute.cluster_resolver.TPUClusterResolver

    class Resolver(real):
        def get_tpu_system_metadata(self):
            return SimpleNamespace(
                num_cores=len(cores), num_hosts=1, num_of_cores_per_host=len(cores), topology=None,
                devices=[SimpleNamespace(name=name, device_type="TPU") for name in cores])

    monkeypatch.setattr(tf.distribute.cluster_resolver, "TPUClusterResolver", Resolver)
    monkeypatch.setattr(tf.tpu.experimental, "initialize_tpu_system", lambda resolver: None)
    made = create_strategy(RuntimeConfig(tpu="local"))
    host, extended = tf.config.list_logical_devices("CPU")[0].name, made.extended
    extended._tpu_devices = np.array([[cpu] for cpu in cpus], dtype=object)
    extended._device_input_worker_devices = collections.OrderedDict({host: cpus})
    extended._host_input_worker_devices = collections.OrderedDict({host: [host] * len(cpus)})
    return made
