r"""Measures our exported training step on an NVIDIA GPU, beside Hugging Face's in PyTorch.

    python -m benchmarks.accelerator --steps=steps
    python -m benchmarks.accelerator --steps=steps --cases=base-256x128 --profile=traces

`python -m benchmarks.accelerator.export` writes the steps, where TensorFlow is; here it isn't
needed. Prints a table per case and writes results.md and results.json. A case takes minutes: every
system starts anew in every round, alone on the card. benchmarks/README.md says what is measured and
how. It was tried on CPUs (--device=cpu) and never ran on a GPU.
"""

import dataclasses
import functools
import pathlib
import sys
import tempfile

from absl import flags

from benchmarks.accelerator import report, steps, systems
from benchmarks.accelerator.rounds import Rounds
from benchmarks.harness import host
from benchmarks.harness.process import WorkerFailed
from benchmarks.pretraining.interleave import Measurement
from benchmarks.pretraining.report import to_json
from benchmarks.pretraining.summary import CaseSummary, summarise
from benchmarks.pretraining.systems import System
from benchmarks.pretraining.workload import Workload
from electra_tf.platform import atomic_file, command_line
from electra_tf.platform.errors import UserError


def main() -> None:
    """Runs the cases one after the other; after each, the files hold what is known so far.

    Raises:
        UserError: no steps, an unknown case or system, an --output_dir that can't be written, or
            nothing that could be measured.
    """
    values, machine = flags.FLAGS, host.describe()
    directory, output = pathlib.Path(values.steps), pathlib.Path(values.output_dir)
    workloads = steps.found(directory, values.cases)
    compared = systems.chosen(values.device, values.systems)
    if values.peers_python and not pathlib.Path(values.peers_python).exists():
        raise UserError(f"--peers_python: there is no {values.peers_python}.")
    atomic_file.make_directory(output)
    summaries: list[CaseSummary] = []
    measurements: dict[str, list[Measurement]] = {}
    for workload in workloads:
        summary, measurements[workload.case] = _run(
            dataclasses.replace(workload, threads=host.available_cores()), directory, compared)
        summaries.append(summary)
        card = report.card_of([one.accelerator for measured in measurements.values()
                               for one in measured], values.peak_tflops)
        print(f"\n{report.plain_text(summary, card)}", flush=True)
        _save(output, report.markdown(summaries, card, machine),
              to_json(summaries, measurements, machine | dataclasses.asdict(card), []))
    if not any(row.tokens_per_second for summary in summaries for row in summary.rows):
        raise UserError("nothing could be measured; the reasons stand above.")
    print("\n".join(["", *report.LEGEND, f"wrote {output}/results.md, results.json"]))


def _run(workload: Workload, directory: pathlib.Path,
         compared: list[System]) -> tuple[CaseSummary, list[Measurement]]:
    values = flags.FLAGS
    say = functools.partial(print, f"{workload.case}:", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as caches:
        launcher = systems.Launcher(
            steps=directory, caches=pathlib.Path(caches), timeout=values.timeout,
            peers_python=pathlib.Path(values.peers_python) if values.peers_python else None)
        measured = Rounds(workload=workload, rounds=values.rounds, steps=values.steps_per_turn,
                          launch=launcher.start, say=say).measure(compared)
        if values.profile:
            try:
                say(f"wrote {launcher.profile(workload, values.device, values.profile)}")
            except WorkerFailed as error:
                say(f"no profile: {error}")
    return summarise(
        workload, measured, rounds=values.rounds, steps=values.steps_per_turn), measured


def _save(output: pathlib.Path, page: str, data: str) -> None:
    for name, text in {"results.md": page, "results.json": data}.items():
        with atomic_file.replacing(output / name) as temporary:
            temporary.write_text(text, encoding="utf-8")


def _define_flags() -> None:
    flags.DEFINE_string("steps", "steps", "Directory that benchmarks.accelerator.export wrote.")
    flags.DEFINE_list("cases", [], "Names of steps in it; all if empty, the quickest first.")
    flags.DEFINE_list("systems", [], "Some of ours, rate, hf-eager, hf-compiled, hf-graphs, or "
                      "beginnings of them; all if empty.")
    flags.DEFINE_enum("device", "cuda", ["cuda", "cpu"],
                      "cuda: the first card that CUDA_VISIBLE_DEVICES names. cpu: to try it.")
    flags.DEFINE_string("peers_python", "", "Python with PyTorch and transformers; this one, with "
                        "JAX, if empty.")
    flags.DEFINE_float("peak_tflops", None, "The card's dense bfloat16 peak in 1e12 FLOP/s, "
                       "instead of electra_tf/modeling/device_peaks.py's.", lower_bound=1e-3)
    flags.DEFINE_integer("rounds", 3, "Turns of every system.", lower_bound=1)
    flags.DEFINE_integer("steps_per_turn", 20, "Training steps per turn.", lower_bound=1)
    flags.DEFINE_float("timeout", 1200, "Seconds to wait for one answer; the first includes "
                       "compiling.", lower_bound=1)
    flags.DEFINE_string("output_dir", "benchmarks/results", "Where the results go.")
    flags.DEFINE_string("profile", "", "Directory for a trace of five steps of ours, one below it "
                        "per case; none if empty.")


if __name__ == "__main__":
    _define_flags()
    command_line.run(main, summary=__doc__, groups={
        "What": ["steps", "cases", "systems", "device", "peers_python", "peak_tflops"],
        "How": ["rounds", "steps_per_turn", "timeout"],
        "Results": ["output_dir", "profile"]})
