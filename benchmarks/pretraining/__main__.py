r"""Measures our pre-training step beside its peers', and the machine's own limit.

    make bench
    python -m benchmarks.pretraining --cases=small-128 --systems=ours,hf-bfloat16 --rounds=3

Prints a table per case and writes results.md, results.json and results.png. On two CPU cores the
three cases take about an hour; stop other programs first. benchmarks/README.md says what is
measured and how.
"""

import functools
import pathlib
import sys
import tempfile

from absl import flags

from benchmarks.harness import host
from benchmarks.harness.systems import define_flags
from benchmarks.pretraining import cases, chart, report, systems
from benchmarks.pretraining.interleave import Turns
from benchmarks.pretraining.summary import CaseSummary, summarise
from electra_tf.platform import atomic_file, command_line

_CASES = flags.DEFINE_list(
    "cases", list(cases.DEFAULT_CASES),
    f"Some of {', '.join(cases.CASES)}; or {cases.OTHER_CASES}.")
_SYSTEMS = flags.DEFINE_list(
    "systems", [], "Names of systems, or beginnings of names (ours, hf, mg); all if empty.")
_STEPS = flags.DEFINE_integer("steps", 1, "Training steps per turn.", lower_bound=1)
_THREADS = flags.DEFINE_integer("threads", 0, "CPU cores to use; 0 for all.", lower_bound=0)
_TIMEOUT = flags.DEFINE_float(
    "timeout", 1200, "Seconds to wait for one answer; the first includes compiling.",
    lower_bound=1)
define_flags(rounds=7)


def main() -> None:
    """Runs the cases one after the other; after each, the files hold what is known so far.

    Raises:
        UserError: an unknown case or system, or an --output_dir that can't be written.
    """
    for name in _CASES.value:
        cases.case_of(name)
    peers_python = pathlib.Path(flags.FLAGS.peers_python)
    compared = systems.chosen(_SYSTEMS.value, with_peers_environment=peers_python.exists())
    output, machine = pathlib.Path(flags.FLAGS.output_dir), host.describe()
    atomic_file.make_directory(output)
    notes = [] if peers_python.exists() else [
        f"There is no {peers_python}: the peers in PyTorch are left out; `make bench` builds it."]
    notes += dict.fromkeys(system.note for system in compared if system.note)
    print("\n".join([report.host_line(machine), *notes]), flush=True)
    summaries, measurements = [], {}
    for name in _CASES.value:
        summary, measurements[name] = _run(name, compared, peers_python)
        summaries.append(summary)
        print(f"\n{report.plain_text(summary)}", flush=True)
        _save(output, summaries, report.markdown(summaries, machine, notes),
              report.to_json(summaries, measurements, machine, notes))
    print("\n".join(["", *report.LEGEND, f"wrote {output}/results.md, results.json, results.png"]))


def _run(name: str, compared: list[systems.System],
         peers_python: pathlib.Path) -> tuple[CaseSummary, list]:
    workload = cases.workload_of(name, _THREADS.value or host.available_cores())
    with tempfile.TemporaryDirectory() as caches:
        turns = Turns(
            workload=workload, rounds=flags.FLAGS.rounds, steps=_STEPS.value,
            has_room=host.has_room,
            launch=lambda system: systems.launch(
                system, peers_python=peers_python, threads=workload.threads,
                cache=pathlib.Path(caches) / system.name, timeout=_TIMEOUT.value),
            say=functools.partial(print, f"{name}:", file=sys.stderr, flush=True))
        measured = turns.measure(compared)
    return summarise(workload, measured, rounds=flags.FLAGS.rounds, steps=_STEPS.value), measured


def _save(output: pathlib.Path, summaries: list[CaseSummary], page: str, data: str) -> None:
    for name, text in {"results.md": page, "results.json": data}.items():
        with atomic_file.replacing(output / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
    chart.draw_bars(summaries, output / "results.png")


if __name__ == "__main__":
    command_line.run(main, summary=__doc__, groups={
        "What": ["cases", "systems", "peers_python"],
        "How": ["rounds", "steps", "threads", "timeout"],
        "Results": ["output_dir"]})
