"""Lifts the training step to a pure function in StableHLO: (batch, state) -> (results, state).

It is the step of `run_pretraining.py` for one replica with the whole batch. A compiler
splits the batch over devices, which changes no draw: every draw is a function of the example's
index in the global batch. `export` writes a run's step and state for another machine, `take_back`
makes a checkpoint of the state that was trained there.
"""

import hashlib
import re
from collections.abc import Mapping

import numpy as np
import tensorflow as tf
from tensorflow.compiler.mlir.stablehlo import stablehlo

from electra_tf.apps.stablehlo import artefact
from electra_tf.apps.stablehlo.artefact import STEP, Layout, LiftedStep, Reading, StateValue, Value
from electra_tf.checkpoints import run_directory
from electra_tf.config.objectives import objective_class
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import Precision, PretrainingConfig
from electra_tf.data.example import Batch
from electra_tf.modeling import fused, weight_table
from electra_tf.modeling.masking import SpecialTokens, TokenKinds
from electra_tf.objectives.objective import Objective
from electra_tf.objectives.pretraining import Given, GivenGenerator
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.pretraining import training_run
from electra_tf.pretraining.setup import Run
from electra_tf.reporting.metrics_log import MetricsLog, read_metrics
from electra_tf.training.assembly import build_model, build_state, build_step
from electra_tf.training.step import TrainState

_LONGEST = 512
"""Longest default length in tokens of a step without records."""
_MODULE = re.compile(r"(?m)^module @\S+(?: attributes (?P<attributes>\{.*\}))? \{$")
_ALIAS = re.compile(r"parameter_number = (\d+) : i64\}, output_index = array<i64: (\d+)>")
_PORTABLE = tuple((re.compile(pattern), replacement) for pattern, replacement in (
    # Source locations in Python: half of the text, different on every machine.
    (r"(?m)^#loc.*\n", ""),
    (r' loc\((?:[^()"]|"(?:[^"\\]|\\.)*"|\((?:[^()"]|"(?:[^"\\]|\\.)*")*\))*\)', ""),
    (_MODULE.pattern, "module @step {"),
    (r" \{mhlo\.frontend_attributes = \{[^{}]*\}\}", ""),  # Hints.
    # A copy only affects memory. The error function is called as JAX's exports call it.
    (r"= mhlo\.copy (%\S+) : (\S+)", r"= stablehlo.reshape \1 : (\2) -> \2"),
    (r"= mhlo\.erf (%\S+) : (\S+)",
     r"= stablehlo.custom_call @mhlo.erf(\1) {mhlo.attributes = {}, mhlo.version = 1 : i64} : "
     r"(\2) -> \2")))
"""Rewriting of TensorFlow's module into StableHLO alone, without XLA's own dialect `mhlo`."""
_FOREIGN = re.compile(r"= \"?((?:mhlo|chlo)\.\w+)")


def for_one_device(config: PretrainingConfig) -> PretrainingConfig:
    """Returns a run's settings for a lifted step: one replica, compiled by another program.

    Results don't change. Precision auto becomes bfloat16, which every TPU multiplies.
    """
    precision = config.training.precision
    return override(config, {
        "runtime.distribution_strategy": "one_device", "runtime.num_gpus": 0, "runtime.tpu": "",
        "runtime.cpu_parts": 1, "runtime.xla": "off",
        "training.precision":
            Precision.BFLOAT16 if precision is Precision.AUTO else precision})


def lift(config: PretrainingConfig, objective: Objective, state: TrainState,
         strategy: tf.distribute.Strategy, reading: Reading | None = None) -> LiftedStep:
    """Traces a step and writes it as StableHLO.

    Args:
        config: returned by `for_one_device`, with a length.
        objective: its loss is minimized.
        state: supplies shapes; its values are not read.
        strategy: the one device of `state`, a CPU.
        reading: how the run reads its records; None without records.

    Raises:
        UserError: the step has an op that StableHLO or XLA lacks.
    """
    training = config.training
    shape = [training.train_batch_size, config.data.max_seq_length]
    batch = Batch(ids=tf.TensorSpec(shape, tf.int32, "ids"),
                  valid=tf.TensorSpec(shape, tf.bool, "valid"),
                  segment_ids=tf.TensorSpec(shape, tf.int32, "segment_ids"))
    step = build_step(config, objective, state, strategy, training.num_train_steps)
    with fused.compiled_as_a_whole():
        function = tf.function(lambda *parts: strategy.run(step, args=(Batch(*parts),)),
                               jit_compile=True, autograph=False)
        concrete = function.get_concrete_function(*batch)
        text = function.experimental_get_compiler_ir(*batch)(
            stage="stablehlo", platform_name="CPU")
    module, new_values = portable(text), updates(text)
    by_handle = {id(variable.handle): variable for variable in state.variables}
    variables = [by_handle[id(handle)] for handle in concrete.captured_inputs]
    names = [state_name(variable) for variable in variables]
    if len(set(names)) < len(names) or STEP not in names:
        raise ValueError(f"the state needs a {STEP} and names that differ. Received: {names}")
    return LiftedStep(module=module, layout=Layout(
        format_version=artefact.FORMAT_VERSION, sha256=hashlib.sha256(module).hexdigest(),
        batch_size=training.train_batch_size, num_train_steps=training.num_train_steps,
        batch=tuple(Value(name=part.name, shape=tuple(part.shape), dtype=part.dtype.name)
                    for part in batch),
        state=tuple(StateValue(name=name, shape=tuple(variable.shape), dtype=variable.dtype.name,
                               result=new_values.get(index))
                    for index, (name, variable) in enumerate(
                        zip(names, variables, strict=True), start=len(batch))),
        results=tuple(f"{name}/{part}" for name in sorted(concrete.structured_outputs)
                      for part in ("sum", "weight")),
        reading=reading))


def lift_without_records(config: PretrainingConfig) -> LiftedStep:
    """Lifts the step of any settings without records; vocabulary and counts are placeholders.

    `model.vocab_size` must have its final value. A length beyond the model's positions and a
    vocabulary without room for the special tokens are refused with a `UserError`.
    """
    config = for_one_device(config)
    positions = config.model.max_position_embeddings
    length = config.data.max_seq_length or min(_LONGEST, positions)
    if length > positions:
        raise UserError(f"data.max_seq_length={length}, but the model has "
                        f"model.max_position_embeddings={positions}.")
    config = override(config, {"data.max_seq_length": length})
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    objective = objective_class(config.objective.name)(config, _given(config))
    model = build_model(objective, config, strategy, seed=config.training.seed)
    return lift(config, objective, build_state(config, model, strategy), strategy)


def _given(config: PretrainingConfig) -> Given:
    size = config.model.vocab_size
    special = SpecialTokens(pad=0, cls=2, sep=3, mask=4)
    if size <= max(special):
        raise UserError(f"model.vocab_size={size} is too small for a vocabulary.")
    encoder = config.model.generator
    shapes = weight_table.language_model(
        "generator", encoder, weight_table.whole_encoder(encoder)).weights
    generator = GivenGenerator(encoder, {path: np.zeros(shape, np.float32)
                                         for path, shape in shapes.items()})
    return Given(kinds=TokenKinds(special, size, np.zeros(size, bool)), generator=generator,
                 token_counts=lambda: np.ones(size, np.int64))


def state_name(variable: tf.Variable) -> str:
    """Returns the name that a layout gives to a variable."""
    return variable.name.split(":")[0]


def updates(module: str) -> Mapping[int, int]:
    """Returns the number of a parameter -> the number of the result that is its new value.

    In TensorFlow's module the value of a resource variable is a parameter.
    """
    found = _MODULE.search(module)
    return {int(parameter): int(result)
            for parameter, result in _ALIAS.findall(found["attributes"] or "")}


def portable(module: str) -> bytes:
    """Returns TensorFlow's module as a portable artefact: StableHLO that later versions read.

    A module with an op of another dialect is refused with a `UserError`.
    """
    for pattern, replacement in _PORTABLE:
        module = pattern.sub(replacement, module)
    foreign = _FOREIGN.search(module)
    if foreign:
        raise UserError(f"the step has the op {foreign[1]}, which StableHLO doesn't have, so it "
                        "can't be written for other compilers.")
    return stablehlo.serialize_portable_artifact_str(module, stablehlo.get_current_version())


def export(run: Run, path: Path) -> LiftedStep:
    """Writes a run's step, and the state of its newest checkpoint or its initial state.

    The run claims its directory, as at the start of a training. A directory of another run, a run
    of two stages and an extended run are refused with a `UserError`.

    Args:
        run: prepared with settings returned by `for_one_device`.
        path: ends in ".stablehlo".
    """
    config = run.config
    if run.finished_at:
        raise UserError(f"{run.model_dir} holds an extended run, whose schedule can't be exported; "
                        "begin a new run with --init_checkpoint.")
    if config.objective.generator_steps(config.training.num_train_steps):
        raise UserError(f"objective.name={config.objective.name} is two runs; export each by "
                        "itself: objective.name=mlm, then objective.name=frozen_generator with "
                        "that run as objective.generator and --init_checkpoint.")
    run_directory.claim(run.model_dir, run.identity, of_the_start="initialization")
    with run_directory.only_process(run.model_dir):
        run.vocabulary.save(run.model_dir / run_directory.VOCABULARY_FILE)
        state, _, _ = training_run.restored_state(run)
        step = lift(config, run.objective, state, run.strategy, _reading(run))
        artefact.write(step, path)
        values = {state_name(variable): variable for variable in state.variables}
        artefact.write_state({value.name: values[value.name].numpy()
                              for value in step.layout.state},
                             step.layout, path.with_suffix(".npz"))
    return step


def take_back(run: Run, path: Path, state_path: Path) -> str:
    """Makes a checkpoint of a state that was trained elsewhere, and returns its path.

    A state of another run, a state no newer than the last checkpoint and damaged files are refused
    with a `UserError`.

    Args:
        run: the run that `export` wrote.
        path: the file of the step.
        state_path: the state that `run_step` wrote; its metrics file is appended to the run's.
    """
    layout = artefact.read(path).layout
    if layout.reading != _reading(run):
        raise UserError(f"{path} is a step of other records or settings than this command's; give "
                        "the flags with which it was exported.")
    run_directory.claim(run.model_dir, run.identity, of_the_start="initialization")
    with run_directory.only_process(run.model_dir):
        state, manager, _ = training_run.restored_state(run)
        values, before = artefact.read_state(state_path, layout), int(state.step.numpy())
        step = int(values[STEP])
        if step <= before:
            raise UserError(f"{state_path} is of step {step:,}, and the run has a checkpoint of "
                            f"step {before:,} already; name a newer state.")
        variables = {state_name(variable): variable for variable in state.variables}
        for name, value in values.items():
            if name not in variables or tuple(variables[name].shape) != value.shape:
                raise UserError(f"{state_path} is of another model: {name} isn't this run's.")
            variables[name].assign(value)
        saved = manager.save(step)
        metrics = state_path.with_suffix(".jsonl")
        if metrics.exists():
            log = MetricsLog(run.model_dir / run_directory.METRICS_FILE)
            log.rewind(before)
            for record in read_metrics(metrics):
                if before < record["step"] <= step:
                    log.append(record)
    return saved


def _reading(run: Run) -> Reading:
    config = run.config
    return Reading(fingerprint=run.records.fingerprint, seed=config.training.seed,
                   shuffle_buffer=config.data.shuffle_buffer, length=run.length,
                   pad_id=run.vocabulary.pad_id)
