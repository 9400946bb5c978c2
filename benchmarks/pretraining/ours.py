"""Runs this project's training step as `run_pretraining.py` does."""

import tensorflow as tf

from benchmarks.harness.worker import Ready
from benchmarks.pretraining import workload
from benchmarks.pretraining.cases import case_of
from benchmarks.pretraining.workload import Step, StepOptions, Workload
from electra_tf.config.objectives import objective_class
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.data.example import Batch
from electra_tf.modeling.masking import SpecialTokens
from electra_tf.objectives.pretraining import ObjectiveContext
from electra_tf.pretraining.steps import compile_steps
from electra_tf.training.devices import build_model, build_state, build_step, use_xla
from electra_tf.training.strategies import create_strategy, prepare_cpu


@workload.takes_workload
def prepare(work: Workload, options: StepOptions) -> Ready:
    """Returns the step with the case's settings, "auto" resolved for this machine."""
    config = case_of(work.case).config(options)
    parts = prepare_cpu(config.runtime, work.batch)
    config = override(config, {"runtime.cpu_parts": parts})
    strategy = create_strategy(config.runtime)
    xla = use_xla(config.runtime.xla, strategy)
    return Ready(
        label=f"{options.precision}, XLA {'on' if xla else 'off'}",
        versions={"TensorFlow": tf.__version__},
        turn=workload.steps_of(lambda: _build(work, config, strategy)))


def _build(work: Workload, config: PretrainingConfig, strategy: tf.distribute.Strategy) -> Step:
    """Builds model, state and loop of a pre-training run on synthetic text."""
    special = SpecialTokens(pad=workload.PAD_ID, cls=workload.CLS_ID, sep=workload.SEP_ID,
                            mask=workload.MASK_ID)
    objective = objective_class(config.objective.name)(config, ObjectiveContext.placeholder(
        work.vocab_size, special))
    model = build_model(objective, config, strategy, seed=config.training.seed)
    state = build_state(config, model, strategy)
    step = build_step(config, objective, state, strategy, config.training.num_train_steps)
    shape = [workload.BATCHES, work.batch, work.length]
    ids = tf.random.stateless_uniform(
        shape, [1, 2], workload.FIRST_WORD_ID, work.vocab_size, tf.int32)
    text = Batch(ids=ids, valid=tf.ones(shape, tf.bool), segment_ids=tf.zeros(shape, tf.int32))
    run_steps = compile_steps(strategy, step, strategy.experimental_distribute_dataset(
        tf.data.Dataset.from_tensor_slices(text).repeat()))
    return lambda: float(run_steps(1)["loss"].sum)
