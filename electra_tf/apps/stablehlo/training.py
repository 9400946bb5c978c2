"""Trains with a lifted step on JAX's runtime, from real records; knows nothing of TensorFlow."""

import collections
import dataclasses
import math
from collections.abc import Iterator, Mapping

import jax
import numpy as np

from electra_tf.apps.stablehlo import artefact, jax_step
from electra_tf.apps.stablehlo.artefact import LiftedStep
from electra_tf.data import mixture, reader
from electra_tf.data.example import Batch
from electra_tf.data.mixture import Mixture
from electra_tf.data.order import Order, RowPlaces
from electra_tf.platform.errors import UserError
from electra_tf.platform.machine import peak_memory_bytes
from electra_tf.platform.signals import Interrupted, StopRequest
from electra_tf.platform.storage import Path, require_local
from electra_tf.reporting.metrics_log import TRAIN, MetricsLog
from electra_tf.reporting.pace import Pace
from electra_tf.reporting.progress import Progress, progress_line

_WATCHED = "loss/sum", "gradient_norm/sum"
"""Results that end a run when they aren't finite: the step left the weights as they were."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Session:
    """What one call of `run_step` does."""

    step_path: Path
    data_dir: str
    state_path: Path
    """Continued from if it is there, and written."""
    last_step: int
    """To train up to; 0 for the run's last."""
    log_every_steps: int
    save_every_steps: int


def train(session: Session) -> None:
    """Trains up to a step, saves the state on the way and at the end.

    Raises:
        UserError: a file is missing or damaged, the records aren't those of the run, devices
            can't share the batch, a loss isn't finite.
        Interrupted: a signal stopped it; the state of its last step is saved.
    """
    step = artefact.read(session.step_path)
    records = _records(session.data_dir, step)
    resumed = session.state_path.exists()
    state = artefact.read_state(
        session.state_path if resumed else session.step_path.with_suffix(".npz"), step.layout)
    first, last = artefact.step_of(state), session.last_step or step.layout.num_train_steps
    if not first < last <= step.layout.num_train_steps:
        raise UserError(f"--last_step={last} must be past step {first:,}, which the state is of, "
                        f"and at most {step.layout.num_train_steps:,}, the run's last.")
    devices = jax.devices()
    print(f"devices  {len(devices)} x {devices[0].device_kind}\nsteps    {first:,} done, "
          f"{last - first:,} to go", flush=True)
    with StopRequest() as request:
        stopped = _Loop(session, step, records, state, devices).run(first, last, request)
    if stopped:
        raise Interrupted(request.number, f"stopped at step {stopped:,} of {last:,}; its state is "
                          "saved. The same command goes on from there.")


def _records(data_dir: str, step: LiftedStep) -> Mixture:
    reading = step.layout.reading
    if reading is None:
        raise UserError("this step was made without records, to be compiled only; export it with "
                        "--data_dir and --model_dir.")
    records = mixture.load(data_dir)
    for source in records.sources:
        require_local(source.data_dir, "--data_dir", "run_step reads files alone")
    if records.fingerprint != reading.fingerprint:
        raise UserError(f"the records in {records} aren't those that the step was exported with.")
    records.verify()
    return records


class _Loop:
    def __init__(self, session: Session, step: LiftedStep, records: Mixture,
                 state: Mapping[str, np.ndarray], devices: list[jax.Device]):
        self._session, self._layout = session, step.layout
        self._records = records
        self._call = jax_step.JaxStep(step, devices, jax_step.platform_of(devices[0]))
        self._state = self._call.on_devices(state)
        self._log = MetricsLog(session.state_path.with_suffix(".jsonl"))
        self._results: list[Mapping[str, jax.Array]] = []
        self._pace = Pace()

    def run(self, first: int, last: int, request: StopRequest) -> int | None:
        """Returns the step at which a signal ended it, None if it is done."""
        self._log.rewind(first)
        for number, batch in enumerate(self._batches(first, last), start=first + 1):
            results, self._state = self._call(batch, self._state)
            self._results.append(results)
            stopped = request.number is not None
            saves = stopped or number == last or number % self._session.save_every_steps == 0
            if saves or number == first + 1 or number % self._session.log_every_steps == 0:
                self._report(number, last, is_first=number == first + 1)
            if saves:
                self._save()
            if stopped:
                return number
        return None

    def _batches(self, first: int, last: int) -> Iterator[Batch]:
        reading = self._layout.reading
        order = Order(records=self._records, seed=reading.seed,
                      places=RowPlaces(self._records.max_seq_length, reading.length),
                      window_examples=reading.shuffle_window)
        return reader.training_batches(
            order, pad_id=reading.pad_id, batch_size=self._layout.batch_size, first_step=first,
            last_step=last)

    def _report(self, number: int, last: int, *, is_first: bool) -> None:
        """Waits for the steps since the last report and tells of them."""
        history = [{name: float(value) for name, value in results.items()}
                   for results in jax.device_get(self._results)]
        self._results = []
        self._require_finite(history, number)
        count = len(history)
        seconds = self._pace.first_step() if is_first else self._pace.steps(count)
        totals = collections.Counter()
        for results in history:
            totals.update(results)
        means = self._layout.means(totals)
        tokens = self._layout.batch_size * self._layout.reading.length
        rate = None if is_first else count * tokens / max(seconds, 1e-9)
        if is_first:
            print(f"first step after {seconds:.1f} s", flush=True)
        memory = peak_memory_bytes()
        print(progress_line(Progress(
            step=number, num_steps=self._layout.num_train_steps, loss=means["loss"],
            losses={name.removesuffix("_loss"): value for name, value in means.items()
                    if name.endswith("_loss")},
            learning_rate=means["learning_rate"], tokens_per_second=rate,
            seconds_left=None if is_first else self._pace.seconds_left(last - number, {}),
            seconds_elapsed=self._pace.elapsed, peak_memory_bytes=memory)), flush=True)
        self._log.append({"kind": TRAIN, "step": number, **means, "peak_memory_bytes": memory}
                         | ({} if rate is None else {"tokens_per_second": rate}))

    def _require_finite(self, history: list[dict[str, float]], last: int) -> None:
        for number, results in enumerate(history, start=last - len(history) + 1):
            bad = [name for name in _WATCHED if not math.isfinite(results[name])]
            if bad:
                raise UserError(f"{bad[0].removesuffix('/sum')} is not finite at step {number:,}. "
                                "The last state that was saved is intact.")

    def _save(self) -> None:
        state = {name: np.asarray(value) for name, value in self._state.items()}
        artefact.write_state(state, self._layout, self._session.state_path)
        self._pace.aside("state")
