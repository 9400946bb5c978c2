"""Steps of two cases as files, which aren't really steps."""

import dataclasses
import hashlib

from benchmarks.accelerator import steps
from electra_tf.apps.stablehlo.artefact import LiftedStep
from electra_tf.apps.stablehlo.layout import FORMAT_VERSION, Layout, StateValue, Value
from tests.benchmarks.workloads import BY_HAND

MODULE = b"a module"


def layout(**changes):
    return Layout(**{
        "format_version": FORMAT_VERSION, "sha256": hashlib.sha256(MODULE).hexdigest(),
        "batch_size": 2, "num_train_steps": 9, "results": ("loss/sum", "loss/weight"),
        "reading": None, "batch": (Value(name="ids", shape=(2, 8), dtype="int32"),),
        "state": (StateValue(name="step", shape=(), dtype="int64", result=2),)} | changes)


def write(directory):
    for case, batch in {"large": 512, "little": 2}.items():
        ids = Value(name="ids", shape=(batch, BY_HAND.length), dtype="int32")
        steps.write(LiftedStep(module=MODULE, layout=layout(batch=(ids,))),
                    dataclasses.replace(BY_HAND, case=case, batch=batch), directory)
