"""A run's step and state for other machines, and their states back into the run's checkpoints."""

from electra_tf.apps.stablehlo import artefact
from electra_tf.apps.stablehlo.artefact import LiftedStep, Reading
from electra_tf.apps.stablehlo.lift import lift, state_name
from electra_tf.checkpoints import run_directory
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.pretraining import training_run
from electra_tf.pretraining.setup import Run
from electra_tf.reporting.metrics_log import MetricsLog, read_metrics


def export(run: Run, path: Path) -> LiftedStep:
    """Writes a run's step, and the state of its newest checkpoint, or as it begins.

    The run's directory belongs to it afterwards, as if it had been started there.

    Args:
        run: its settings by `lift.for_one_device`.
        path: ends in ".stablehlo".

    Raises:
        UserError: the directory belongs to another run; something can't be written.
    """
    artefact.require_name(path)
    _require_one_stage(run)
    run_directory.claim(run.model_dir, run.identity, of_the_start="initialization")
    with run_directory.only_process(run.model_dir):
        run.vocabulary.save(run.model_dir / run_directory.VOCABULARY_FILE)
        state, _, _ = training_run.restored_state(run)
        step = lift(run.config, run.objective, state, run.strategy, _reading(run))
        artefact.write(step, path)
        values = {state_name(variable): variable for variable in state.variables}
        artefact.write_state({value.name: values[value.name].numpy()
                              for value in step.layout.state},
                             step.layout, path.with_suffix(".npz"))
    return step


def take_back(run: Run, path: Path, state_path: Path) -> str:
    """Makes a checkpoint of the run of a state that was trained elsewhere.

    Args:
        run: that `export` wrote the step of.
        path: of the step.
        state_path: what `run_step` wrote; records of its progress beside it go to the run's.

    Returns:
        The checkpoint's path.

    Raises:
        UserError: another run's, an older state than the run's newest checkpoint, or files that
            are missing or damaged.
    """
    layout = artefact.read(path).layout
    if layout.reading != _reading(run):
        raise UserError(f"{path} is a step of other records or settings than this command's; give "
                        "the flags with which it was exported.")
    run_directory.claim(run.model_dir, run.identity, of_the_start="initialization")
    with run_directory.only_process(run.model_dir):
        state, manager, _ = training_run.restored_state(run)
        values, before = artefact.read_state(state_path, layout), int(state.step.numpy())
        step = artefact.step_of(values)
        if step <= before:
            raise UserError(f"{state_path} is of step {step:,}, and the run has a checkpoint of "
                            f"step {before:,} already; name a newer state.")
        variables = {state_name(variable): variable for variable in state.variables}
        for name, value in values.items():
            if name not in variables or tuple(variables[name].shape) != value.shape:
                raise UserError(f"{state_path} is of another model: {name} isn't this run's.")
            variables[name].assign(value)
        saved = manager.save(step, check_interval=False)
        _take_metrics(run, state_path.with_suffix(".jsonl"), before, step)
    return saved


def _take_metrics(run: Run, path: Path, before: int, step: int) -> None:
    if path.exists():
        log = MetricsLog(run.model_dir / run_directory.METRICS_FILE)
        log.rewind(before)
        for record in read_metrics(path):
            if before < record["step"] <= step:
                log.append(record)


def _reading(run: Run) -> Reading:
    config = run.config
    return Reading(fingerprint=run.records.manifest.fingerprint, seed=config.training.seed,
                   shuffle_window=config.data.shuffle_window, length=run.length,
                   pad_id=run.vocabulary.pad_id)


def _require_one_stage(run: Run) -> None:
    config = run.config
    if run.finished_at:
        raise UserError(f"{run.model_dir} holds an extended run, whose schedule can't be exported; "
                        "begin a new run with --init_checkpoint.")
    if config.objective.generator_steps(config.training.num_train_steps):
        raise UserError(f"objective.name={config.objective.name} is two runs; export each by "
                        "itself: "
                        "objective.name=mlm, then objective.name=frozen_generator with that run "
                        "as objective.generator and --init_checkpoint.")
