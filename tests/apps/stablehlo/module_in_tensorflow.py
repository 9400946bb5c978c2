"""Runs an exported module within TensorFlow, which has an op for other programs' StableHLO."""

import numpy as np
import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops

from electra_tf.apps.stablehlo.artefact import LiftedStep, State

VERSION = 9


def function_of(step: LiftedStep):
    """Returns a compiled function of the module's arguments that returns its results."""
    layout = step.layout
    results = len(layout.results)
    outputs = {index: ((), tf.float32) for index in range(results)}
    outputs |= {value.result: (value.shape, tf.as_dtype(value.dtype)) for value in layout.state
                if value.result is not None}

    @tf.function(jit_compile=True, autograph=False)
    def call(*arguments):
        return gen_xla_ops.xla_call_module(
            list(arguments), version=VERSION, module=step.module, platforms=["CPU"],
            Sout=[outputs[index][0] for index in range(len(outputs))],
            Tout=[outputs[index][1] for index in range(len(outputs))])

    return call


def run(call, step: LiftedStep, batch, state: State) -> tuple[dict[str, float], State]:
    """Returns the results by name, and the new state, of a function by `function_of`."""
    outputs = call(*(tf.constant(part) for part in batch),
                   *(tf.constant(state[value.name]) for value in step.layout.state))
    new = {value.name: state[value.name] if value.result is None
           else outputs[value.result].numpy() for value in step.layout.state}
    return {name: float(np.asarray(outputs[index]))
            for index, name in enumerate(step.layout.results)}, new
