r"""Trains with an exported step on JAX's devices (CPU, GPUs, TPUs) without TensorFlow.

    .venv-compile/bin/python -m electra_tf.apps.stablehlo.run_step --step=step.stablehlo \
        --data_dir=records --state=trained.npz --last_step=1000

`make compile-env` installs what it needs. `compile_step --export` writes step.stablehlo with
step.json and step.npz beside it. The state is saved to --state regularly, at the end and at SIGTERM
or Ctrl-C; the same command continues from it. trained.jsonl receives a record per report.
`compile_step --take_back` makes a checkpoint of the state.
"""

import collections
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from absl import flags

from electra_tf.apps.stablehlo import artefact
from electra_tf.apps.stablehlo.artefact import LiftedStep
from electra_tf.data import manifest, reader
from electra_tf.data.example import Batch
from electra_tf.data.records import Records
from electra_tf.platform import command_line, storage
from electra_tf.platform.errors import UserError
from electra_tf.platform.machine import peak_memory_bytes
from electra_tf.platform.signals import Interrupted, StopRequest
from electra_tf.platform.storage import Path
from electra_tf.reporting.metrics_log import TRAIN, MetricsLog
from electra_tf.reporting.progress import Pace, progress_line

GROUPS = {"What": ("step", "data_dir", "state"),
          "How long": ("last_step", "log_every_steps", "save_every_steps")}
_WATCHED = "loss/sum", "gradient_norm/sum"
"""Results that end a run if they are not finite; such a step keeps the weights unchanged."""


def main() -> None:
    """Trains up to a step; saves the state regularly, at the end and at a signal."""
    values = flags.FLAGS
    for name in GROUPS["What"]:
        if not values[name].value:
            raise UserError(f"--{name} is needed: {values[name].help}")
    state_path = storage.require_local(storage.path(values.state), "--state",
                                       "it is replaced in one step")
    if state_path.suffix != ".npz":
        raise UserError(f"--state must end in .npz. Received: {str(state_path)!r}")
    step_path = storage.require_local(storage.path(values.step), "--step", "it is read as a whole")
    try:
        import jax
    except ModuleNotFoundError as error:
        raise UserError(f"there is no {error.name} here; run this command with the Python of "
                        "`make compile-env`.") from error
    step = artefact.read(step_path)
    records = _records(values.data_dir, step)
    state = artefact.read_state(
        state_path if state_path.exists() else step_path.with_suffix(".npz"), step.layout)
    first, last = int(state[artefact.STEP]), values.last_step or step.layout.num_train_steps
    if not first < last <= step.layout.num_train_steps:
        raise UserError(f"--last_step={last} must be past step {first:,}, which the state is of, "
                        f"and at most {step.layout.num_train_steps:,}, the run's last.")
    devices = jax.devices()
    print(f"devices  {len(devices)} x {devices[0].device_kind}\nsteps    {first:,} done, "
          f"{last - first:,} to go", flush=True)
    with StopRequest() as request:
        stopped = _Loop(state_path, step, records, state, devices).run(first, last, request)
    if stopped:
        raise Interrupted(request.number, f"stopped at step {stopped:,} of {last:,}; its state is "
                          "saved. The same command continues from there.")


def _records(data_dir: str, step: LiftedStep) -> Records:
    reading = step.layout.reading
    if reading is None:
        raise UserError("this step was made without records, to be compiled only; export it by "
                        "electra_tf.apps.stablehlo.compile_step with --data_dir and --model_dir.")
    built = manifest.load(data_dir)
    records = built.records(storage.require_local(
        storage.path(data_dir), "--data_dir", "run_step reads files alone"))
    if records.fingerprint != reading.fingerprint:
        raise UserError(f"the records in {records} aren't those that the step was exported with.")
    manifest.verify_shards(data_dir, built)
    return records


class _Loop:
    def __init__(self, state_path: Path, step: LiftedStep, records: Records,
                 state: artefact.State, devices: list[Any]):
        from electra_tf.apps.stablehlo import jax_step

        self._state_path, self._layout, self._records = state_path, step.layout, records
        self._call = jax_step.JaxStep(step, devices, jax_step.platform_of(devices[0]))
        self._state = self._call.on_devices(state)
        self._log = MetricsLog(state_path.with_suffix(".jsonl"))
        self._results: list[Mapping[str, Any]] = []
        self._pace = Pace()

    def run(self, first: int, last: int, request: StopRequest) -> int | None:
        """Returns the step at which a signal ended the loop, None after the last step."""
        values = flags.FLAGS
        self._log.rewind(first)
        for number, batch in enumerate(self._batches(first, last), start=first + 1):
            results, self._state = self._call(batch, self._state)
            self._results.append(results)
            stopped = request.number is not None
            saves = stopped or number == last or number % values.save_every_steps == 0
            if saves or number == first + 1 or number % values.log_every_steps == 0:
                self._report(number, last, is_first=number == first + 1)
            if saves:
                artefact.write_state({name: np.asarray(value) for name, value in
                                      self._state.items()}, self._layout, self._state_path)
                self._pace.aside("state")
            if stopped:
                return number
        return None

    def _batches(self, first: int, last: int) -> Iterator[Batch]:
        reading = self._layout.reading
        return reader.training_batches(
            self._records, pad_id=reading.pad_id, seed=reading.seed,
            buffer_examples=reading.shuffle_buffer, batch_size=self._layout.batch_size,
            first_step=first, last_step=last)

    def _report(self, number: int, last: int, *, is_first: bool) -> None:
        """Waits for the steps since the last report and reports them."""
        import jax

        history = [{name: float(value) for name, value in results.items()}
                   for results in jax.device_get(self._results)]
        self._results = []
        for step, results in enumerate(history, start=number - len(history) + 1):
            for name in _WATCHED:
                if not math.isfinite(results[name]):
                    raise UserError(f"{name.removesuffix('/sum')} is not finite at step {step:,}. "
                                    "The last state that was saved is intact.")
        count = len(history)
        seconds = self._pace.first_step() if is_first else self._pace.steps(count)
        totals = collections.Counter()
        for results in history:
            totals.update(results)
        means = self._layout.means(totals)
        tokens = self._layout.batch_size * self._layout.reading.length
        throughput = None if is_first else count * tokens / max(seconds, 1e-9)
        if is_first:
            print(f"first step after {seconds:.1f} s", flush=True)
        memory = peak_memory_bytes()
        print(progress_line(
            means, step=number, num_steps=self._layout.num_train_steps,
            tokens_per_second=throughput,
            seconds_left=None if is_first else self._pace.seconds_left(last - number, {}),
            seconds_elapsed=self._pace.elapsed, peak_memory_bytes=memory), flush=True)
        self._log.append({"kind": TRAIN, "step": number, **means, "peak_memory_bytes": memory}
                         | ({} if is_first else {"tokens_per_second": throughput}))


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_string("step", None, "File that compile_step --export wrote.")
    flags.DEFINE_string("data_dir", None, "Directory of the records that the step was exported "
                        "with.")
    flags.DEFINE_string("state", None, "File of the state, ending in .npz. An existing state is "
                        "continued; the new state replaces it.")
    flags.DEFINE_integer("last_step", 0, "Train up to this step; 0: the run's last.", lower_bound=0)
    flags.DEFINE_integer("log_every_steps", 100, "Steps between reports.", lower_bound=1)
    flags.DEFINE_integer("save_every_steps", 1000, "Steps between saved states.",
                         lower_bound=1)


def run() -> None:
    """Runs the command line."""
    define()
    command_line.run(main, summary=__doc__, groups=GROUPS)


if __name__ == "__main__":
    run()
