r"""Writes the training step of a run as StableHLO, which compiles for accelerators without one.

    python -m benchmarks.accelerator.export --case=base-256x128 --output=base.stablehlo
    python -m benchmarks.accelerator.export --case=base-256x512 --output=base.stablehlo \
        --set runtime.gradient_accumulation_steps=2

--set and --config change any setting of a run. Tracing takes half a minute of one core, and 10 GB
of memory for ELECTRA-Large. docs/how_to/accelerators.md describes the next command.
"""

import re
from typing import Any

from absl import flags

from benchmarks.pretraining.cases import OTHER_CASES, config_of
from electra_tf.config import overrides
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import SIZES, Precision, PretrainingConfig
from electra_tf.core import atomic_file, command_line, storage
from electra_tf.core.errors import UserError


def trace_without_records(config: PretrainingConfig) -> bytes:
    """Returns the step of a run's settings; vocabulary and token counts are placeholders.

    Precision auto becomes bfloat16, which every TPU multiplies. `UserError` for a length beyond the
    model's positions, which a run refuses as well.
    """
    import tensorflow as tf

    from benchmarks.pretraining.ours import build

    length, positions = config.data.max_seq_length, config.model.max_position_embeddings
    if length > positions:
        raise UserError(f"data.max_seq_length={length}, but the model has "
                        f"model.max_position_embeddings={positions}.")
    # One replica with the whole batch. A compiler that splits the batch over devices changes no
    # draw: draws are functions of the example's index in the global batch.
    precision = config.training.precision
    config = override(config, {
        "runtime.distribution_strategy": "one_device", "runtime.num_gpus": 0, "runtime.tpu": "",
        "runtime.cpu_parts": 1, "runtime.xla": "off", "training.precision":
            Precision.BFLOAT16 if precision is Precision.AUTO else precision})
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    return portable(trace(config, *build(config, strategy), strategy)[1])


def trace(config: PretrainingConfig, objective: Any, state: Any, strategy: Any) -> tuple[Any, str]:
    """Traces a step of one replica on a CPU; `state` supplies shapes, its values are not read.

    Returns:
        The concrete function, and its module. The module's arguments are the batch, [B, L] each,
        and the values of the captured variables; its results are the structured outputs and the
        variables' new values.
    """
    import tensorflow as tf

    from electra_tf.data.example import Batch
    from electra_tf.modeling import fused
    from electra_tf.training.step import TrainStep

    shape = [config.training.train_batch_size, config.data.max_seq_length]
    batch = Batch(ids=tf.TensorSpec(shape, tf.int32), padding_mask=tf.TensorSpec(shape, tf.bool),
                  segment_ids=tf.TensorSpec(shape, tf.int32))
    step = TrainStep(config, objective, state, strategy, config.training.num_train_steps)
    with fused.whole_program_compilation():
        function = tf.function(lambda *parts: step(Batch(*parts)), jit_compile=True,
                               autograph=False)
        return function.get_concrete_function(*batch), function.experimental_get_compiler_ir(
            *batch)(stage="stablehlo", platform_name="CPU")


def portable(module: str) -> bytes:
    """Returns TensorFlow's module in StableHLO's portable form, which later versions read."""
    from tensorflow.compiler.mlir.stablehlo import stablehlo

    # Ops of XLA's own dialect `mhlo`: a copy only affects memory; the error function is a call.
    for pattern, replacement in (
            (r"(?m)^module @.*$", "module @step {"),
            (r"= mhlo\.copy (%\S+) : (\S+)", r"= stablehlo.reshape \1 : (\2) -> \2"),
            (r"= mhlo\.erf (%\S+) : (\S+)", r"= stablehlo.custom_call @mhlo.erf(\1) "
             r"{mhlo.attributes = {}, mhlo.version = 1 : i64} : (\2) -> \2")):
        module = re.sub(pattern, replacement, module)
    if match := re.search(r'= "?((?:mhlo|chlo)\.\w+)', module):
        raise UserError(f"the step has the op {match[1]}, which StableHLO doesn't have, so it "
                        "can't be written for other compilers.")
    return stablehlo.serialize_portable_artifact_str(module, stablehlo.get_current_version())


def main() -> None:
    """Writes the step of a case."""
    config = override(config_of(flags.FLAGS.case, "bfloat16"), overrides.given_settings({}))
    path = storage.path(flags.FLAGS.output)
    atomic_file.write_atomically(path, trace_without_records(config))
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    flags.DEFINE_string("case", None, f"Case: toy, or {OTHER_CASES}.", required=True)
    flags.DEFINE_string("output", None, "File to write, such as step.stablehlo.", required=True)
    overrides.define_setting_flags({}, SIZES)
    command_line.run(main, summary=__doc__, groups={
        "What": ["case", "output"], "Any other setting": overrides.ANY_SETTING})
