r"""Measures how long a discriminator takes to learn, ours and Hugging Face's.

    make time-to-quality TIME_FLAGS='--data_dir=records'
    python -m benchmarks.time_to_quality --data_dir=records --minutes=short:15,paper:30,hf:30

Each system trains alone on all cores, the same examples in the same order, and is scored on the
same held-out ones. Prints seconds and tokens to each AUC; writes time_to_quality.md, .json, .png.
benchmarks/README.md says what is equal and what is not.
"""

import pathlib
import tempfile

from absl import flags

from benchmarks.harness import host
from benchmarks.harness.systems import define_places
from benchmarks.time_to_quality import report, systems
from benchmarks.time_to_quality.curve import Curve
from electra_tf.config import setting_flags
from electra_tf.platform import atomic_file, command_line, errors, storage
from electra_tf.reporting.json_file import write_json

_DATA = flags.DEFINE_string("data_dir", None, "Directory of records that data_prep built.")
_MINUTES = flags.DEFINE_list(
    "minutes", ["short:15", "paper:30", "hf:30"],
    f"Which systems ({', '.join(systems.NAMES)}) train, in this order, and for how long each: its "
    "schedule has as many steps as fit.")
_SIZE = flags.DEFINE_string("model_size", "tiny", "As run_pretraining.py's.")
_BATCH = flags.DEFINE_integer("train_batch_size", 16, "Examples per step.", lower_bound=1)
_EVALUATIONS = flags.DEFINE_integer("evaluations", 40, "Of every run.", lower_bound=1)
_EVAL_STEPS = flags.DEFINE_integer(
    "eval_steps", 20, "Held-out batches per evaluation.", lower_bound=1)
_GOALS = flags.DEFINE_list("goals", ["0.60", "0.65", "0.70", "0.75"], "AUCs to reach.")
define_places()


def main() -> None:
    """Runs the systems one after the other; after each, the files hold what is known so far.

    Raises:
        UserError: no records, an unknown system, a goal that is no AUC.
    """
    if not _DATA.value:
        raise errors.UserError(f"--data_dir is needed: {flags.FLAGS['data_dir'].help}")
    minutes = _parsed_minutes(_MINUTES.value)
    goals = [_parsed_goal(text) for text in _GOALS.value]
    if "hf" in minutes and not pathlib.Path(flags.FLAGS.peers_python).exists():
        raise errors.UserError(
            f"there is no {flags.FLAGS.peers_python} to run hf with: `make peers` builds it.")
    race = systems.Race(
        data_dir=pathlib.Path(_DATA.value), model_size=_SIZE.value,
        settings=setting_flags.given_settings(()), batch=_BATCH.value,
        evaluations=_EVALUATIONS.value, eval_batches=_EVAL_STEPS.value,
        threads=host.available_cores(), peers_python=pathlib.Path(flags.FLAGS.peers_python))
    race.config("short")
    machine, output, curves = host.describe(), pathlib.Path(flags.FLAGS.output_dir), []
    atomic_file.make_directory(output)
    for name, amount in minutes.items():
        with tempfile.TemporaryDirectory() as directory:
            curves.append(systems.run(name, race, 60 * amount, pathlib.Path(directory)))
        _save(curves, goals, machine, output)
        print(report.page(curves[-1:], goals), flush=True)
    print(f"{report.page(curves, goals)}\nwrote {output}/time_to_quality.md, .json, .png")


def _parsed_minutes(parts: list[str]) -> dict[str, float]:
    minutes = {}
    for part in parts:
        name, _, amount = part.partition(":")
        try:
            minutes[name] = float(amount)
        except ValueError:
            minutes[name] = 0.0
        if name not in systems.NAMES or not 0 < minutes[name] < float("inf"):
            raise errors.UserError(
                f"--minutes takes NAME:MINUTES, names {', '.join(systems.NAMES)}. "
                f"Received: {part!r}")
    return minutes


def _parsed_goal(text: str) -> float:
    try:
        goal = float(text)
    except ValueError:
        goal = 0.0
    if not 0.5 < goal < 1:
        raise errors.UserError(f"--goals takes AUCs between 0.5 and 1. Received: {text!r}")
    return goal


def _save(curves: list[Curve], goals: list[float], machine: dict, output: pathlib.Path) -> None:
    atomic_file.write_atomically(
        storage.path(output / "time_to_quality.md"),
        f"# Time to quality\n\n{report.page(curves, goals)}".encode())
    write_json(storage.path(output / "time_to_quality.json"), report.content(curves, machine))
    report.draw(curves, goals, output / "time_to_quality.png")


if __name__ == "__main__":
    setting_flags.define((), {})
    command_line.run(main, summary=__doc__, groups={
        "What": ["data_dir", "minutes", "model_size", "train_batch_size", "goals", "peers_python"],
        "How": ["evaluations", "eval_steps"],
        "Any other setting of the networks": setting_flags.ANY_SETTING,
        "Results": ["output_dir"]})
