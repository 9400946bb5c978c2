"""A pre-training run: from the newest checkpoint, or the start, to the last step."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import TextIO

import orbit
import tensorflow as tf

from electra_tf import storage
from electra_tf.checkpoints import run_directory
from electra_tf.checkpoints.manager import CheckpointManager, training_manager
from electra_tf.checkpoints.weights import assign_parts
from electra_tf.config.model import EncoderConfig, Tying
from electra_tf.config.pretraining import Precision, PretrainingConfig
from electra_tf.config.runtime import RuntimeConfig
from electra_tf.cost.devices import peak_flops, peak_fraction
from electra_tf.cost.flops import EncoderShape, matmul_electra_flops_per_token
from electra_tf.distribution.devices import device_name, use_xla
from electra_tf.input.pipeline import training_batches
from electra_tf.optimization.adam import Adam
from electra_tf.optimization.loss_scale import LossScale
from electra_tf.optimization.schedule import Schedule
from electra_tf.storage import Path
from electra_tf.training import failures
from electra_tf.training.curves import draw_curves
from electra_tf.training.evaluation import Evaluator
from electra_tf.training.metrics_log import read_metrics
from electra_tf.training.reporter import Reporter
from electra_tf.training.samples import markdown_page
from electra_tf.training.scoring import report
from electra_tf.training.setup import Run
from electra_tf.training.step import TrainState, TrainStep
from electra_tf.training.trainer import Totals, Trainer

LOGGED_SAMPLES = 4


@failures.explained()
def train(run: Run) -> None:
    """Trains up to the last step, evaluates, and draws the curves.

    Raises:
        UserError: the directory belongs to another run or can't be written; a loss isn't finite.
    """
    if _is_chief(run.strategy):
        run_directory.claim(run.model_dir, run.identity)
        with run_directory.only_process(run.model_dir):
            run.vocabulary.save(run.model_dir / run_directory.VOCABULARY_FILE)
            _train(run, run.model_dir, sys.stdout)
            _draw(run.model_dir)
    else:
        with (tempfile.TemporaryDirectory() as scratch, open(os.devnull, "w") as nowhere):
            _train(run, storage.path(scratch), nowhere)


def _train(run: Run, report_dir: Path, out: TextIO) -> None:
    runtime, total = run.config.runtime, run.config.training.num_train_steps
    state, manager, new_parts = _restored_state(run)
    first_step = int(state.step.numpy())
    _print_header(run, state, first_step, new_parts, out)
    reporter = Reporter(
        report_dir, first_step=first_step, num_steps=total,
        intervals=(runtime.log_every_steps, runtime.save_checkpoints_steps),
        tokens_per_step=run.config.training.train_batch_size * run.manifest.max_seq_length,
        peak_fraction=_peak_fraction(run), out=out)
    evaluator = run.build_evaluator(state.model)
    controller = _controller(run, state, manager, evaluator, reporter)
    for target in _targets(first_step, total, runtime.eval_every_steps):
        with _orbit_silenced():
            controller.train(target, checkpoint_at_completion=False)
        if evaluator is not None and not reporter.has_evaluation(target):
            with _orbit_silenced():
                results = controller.evaluate(runtime.eval_steps or -1)
            results.pop("steps_per_second")  # orbit's, of the evaluation.
            reporter.on_eval(results)
            report(run, results, target, out)
            reporter.skip_time()


def _restored_state(run: Run) -> tuple[TrainState, CheckpointManager, list[str]]:
    """Returns also which parts of the networks another run, if one begins this, didn't have."""
    config, runtime = run.config, run.config.runtime
    model = run.build_model()
    with run.strategy.scope():
        state = TrainState(
            model, Adam(config.optimizer, model.trainable_variables),
            LossScale(enabled=config.training.precision is Precision.FLOAT16))
        checkpoint = tf.train.Checkpoint(
            model=model, optimizer=state.optimizer, loss_scale=state.loss_scale, step=state.step)
        manager = training_manager(
            checkpoint, run.model_dir / run_directory.CHECKPOINTS,
            interval=runtime.save_checkpoints_steps, keep=runtime.keep_checkpoint_max,
            is_chief=_is_chief(run.strategy))
        new_parts = []
        if manager.restore_or_initialize() is None and run.initial is not None:
            new_parts = assign_parts(
                model.trainable_variables, run.initial.weights, run.initial.source)
    return state, manager, new_parts


def _controller(run: Run, state: TrainState, manager: CheckpointManager,
                evaluator: Evaluator | None, reporter: Reporter) -> orbit.Controller:
    runtime = run.config.runtime
    first_step = int(state.step.numpy())
    config = run.config
    step = TrainStep(config=config, objective=run.objective, state=state,
                     schedule=Schedule.of(config.optimizer, config.training.num_train_steps),
                     compile_with_xla=use_xla(runtime.xla, run.strategy))
    batches = run.strategy.distribute_datasets_from_function(
        lambda context: training_batches(
            run.data_dir, run.manifest, pad_id=run.vocabulary.pad_id,
            seed=run.config.training.seed, window_examples=run.config.data.shuffle_window,
            global_batch_size=run.config.training.train_batch_size, first_step=first_step,
            last_step=run.config.training.num_train_steps, context=context))

    def after_loop(totals: Totals) -> None:
        step_now = int(state.step.numpy())
        reporter.on_train(totals, step_now)
        manager.save(step_now, check_interval=step_now < config.training.num_train_steps)
        if (evaluator is not None and runtime.sample_every_steps
                and step_now % runtime.sample_every_steps == 0):
            reporter.on_samples(markdown_page(
                evaluator.samples(LOGGED_SAMPLES, run.vocabulary)))
            reporter.skip_time()

    with _orbit_silenced():
        return orbit.Controller(
            global_step=state.step, strategy=run.strategy,
            trainer=Trainer(run.strategy, step, batches), evaluator=evaluator,
            steps_per_loop=_steps_to_boundary(runtime, first_step), train_actions=[after_loop])


def _steps_to_boundary(runtime: RuntimeConfig, first_step: int) -> Callable[[int], int]:
    """Returns a function from a step to the steps until something has to happen.

    The first step runs alone, so that its compilation can be timed apart.
    """
    intervals = [interval for interval in (
        runtime.log_every_steps, runtime.save_checkpoints_steps, runtime.sample_every_steps)
        if interval]

    def steps(step: int) -> int:
        if step == first_step:
            return 1
        return min(interval - step % interval for interval in intervals)

    return steps


def _targets(first_step: int, total: int, every: int) -> list[int]:
    """Returns the steps from `first_step` on at which training stops to evaluate."""
    steps = set(range(every, total, every)) if every else set()
    return sorted(step for step in steps | {total} if step >= first_step)


@contextlib.contextmanager
def _orbit_silenced() -> Iterator[None]:
    """Keeps `orbit.Controller` from printing its own lines between ours."""
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        yield


def _is_chief(strategy: tf.distribute.Strategy) -> bool:
    resolver = strategy.cluster_resolver
    return resolver is None or not resolver.task_type or resolver.task_type == "chief" or (
        resolver.task_type == "worker" and resolver.task_id == 0
        and "chief" not in resolver.cluster_spec().jobs)


def _peak_fraction(run: Run) -> Callable[[float], float | None]:
    """Returns the map from tokens per second to the used fraction of the devices' peak."""
    config, length = run.config, run.manifest.max_seq_length
    if config.objective.name != "electra":
        return lambda rate: None
    flops = matmul_electra_flops_per_token(
        _shape(config.model.discriminator), _shape(config.model.generator),
        sequence_length=length,
        predicted_fraction=config.masking.max_predictions(length) / length)
    peak = peak_flops(device_name(run.strategy), config.training.precision.value)
    total = None if peak is None else peak * run.strategy.num_replicas_in_sync
    return lambda rate: peak_fraction(rate, flops, total)


def _shape(encoder: EncoderConfig) -> EncoderShape:
    return EncoderShape(
        hidden_size=encoder.hidden_size, num_layers=encoder.num_layers,
        num_heads=encoder.num_heads, intermediate_size=encoder.intermediate_size,
        embedding_size=encoder.embedding_size, vocab_size=encoder.vocab_size)


def _print_header(run: Run, state: TrainState, first_step: int, new_parts: Sequence[str],
                  out: TextIO) -> None:
    config, training = run.config, run.config.training
    examples = sum(shard.examples for shard in run.manifest.shards_of("train"))
    held_out = sum(shard.examples for shard in run.manifest.shards_of("eval"))
    steps_per_epoch = examples / training.train_batch_size
    lines = [
        f"model    {_count_parameters(config, state)}",
        f"records  {examples:,} examples of {run.manifest.max_seq_length} tokens, {held_out:,} "
        f"held out; {steps_per_epoch:,.0f} steps of {training.train_batch_size} an epoch",
        f"begins   with {'new weights' if run.initial is None else run.initial.source}"
        + (f"; new: {', '.join(new_parts)}" if new_parts else ""),
        f"devices  {run.strategy.num_replicas_in_sync} x {device_name(run.strategy)}, "
        f"{training.precision.value}",
        f"steps    {first_step:,} done, {training.num_train_steps - first_step:,} to go"
        f"{'' if first_step < training.num_train_steps else ': this run is finished'}",
    ]
    print("\n".join(lines), file=out, flush=True)


def _count_parameters(config: PretrainingConfig, state: TrainState) -> str:
    def count(variables) -> int:
        return sum(variable.shape.num_elements() for variable in variables)
    total = f"{count(state.model.trainable_variables):,} parameters"
    if config.objective.name == "mlm":
        return total
    discriminator = count(state.model.discriminator.trainable_variables)
    tied = "" if config.model.tying is Tying.NONE else f", {config.model.tying.value} shared"
    return f"{total}: discriminator {discriminator:,}, the rest generator{tied}"


def _draw(model_dir: Path) -> None:
    metrics = model_dir / "metrics.jsonl"
    if metrics.exists():
        curves = model_dir / "loss_curves.png"
        draw_curves({model_dir.name: read_metrics(metrics)}, curves)
        print(f"curves   {curves}\nmodel    {model_dir / 'checkpoints'}", flush=True)
