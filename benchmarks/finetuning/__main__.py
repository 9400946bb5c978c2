r"""Compares the speed of fine-tuning and prediction with a plain PyTorch loop.

    python -m benchmarks.finetuning --data_dir=data --encoder=all-MiniLM-L6-v2

Prints examples/s of training and inference of one encoder in several tasks, and writes
finetuning.md and finetuning.json. Stop other programs first. benchmarks/README.md describes the
measurement.
"""

import pathlib

from absl import flags

from benchmarks.harness import command, tables
from benchmarks.harness.turns import BenchmarkCase, Measurement, system
from benchmarks.real_encoder.tasks import TASKS, define_inputs
from electra_tf.platform.settings import require_one_of

TURNS = {"training": {"what": "train"}, "inference": {"what": "infer"}}
CASES = ("mrpc", "sst2", "squad")
SYSTEMS = (
    *(system(f"ours-{precision}", "finetuning.ours", precision=precision)
      for precision in ("bfloat16", "float32")),
    *(system(f"hf-{precision}-{order}", "finetuning.hugging_face", title="PyTorch",
             precision=precision, order=order)
      for precision, order in (("bfloat16", "sorted"), ("float32", "sorted"),
                               ("float32", "random"))))


def main() -> None:
    """Measures all systems on every task, and prints and writes the tables."""
    values = flags.FLAGS
    for name in values.cases:
        require_one_of(TASKS, "--cases", name)
    bench, data = command.Bench(SYSTEMS), pathlib.Path(values.data_dir).absolute()
    body: list[str] = []
    measured: list[Measurement] = []
    for task in map(TASKS.get, values.cases):
        results = bench.measure(BenchmarkCase(
            name=task.name, turns=TURNS, rounds=values.rounds,
            warm_up=[*TURNS.values()] * 2,  # The first ones compile.
            fields={"task": task.name, "encoder": str(pathlib.Path(values.encoder).absolute()),
                    "train": str(data / task.train), "dev": str(data / task.dev),
                    "max_seq_length": task.max_seq_length, "examples": values.examples,
                    "batch": values.batch}))
        columns = [column for turn in TURNS for column in [
            *tables.compared(results, f"{turn}, examples/s", lambda result, turn=turn: speeds(
                result, turn, "seconds")),
            [f"{turn}, examples/CPU s", *(
                tables.ratio(tables.median(speeds(result, turn, "cpu_seconds")), 1, ",.0f")
                for result in results)]]]
        reply = next(result.warm_up[0] for result in results if result.warm_up)
        body += [f"## {task.name}", "", f"{reply['tokens'] / reply['rows']:.1f} tokens on average.",
                 "", *tables.table(results, [*columns, ["peak GB", *(
                     f"{result.peak_bytes / 1e9:.2f}" for result in results)]]), ""]
        measured += results
    bench.save("finetuning", f"{pathlib.Path(values.encoder).name}, batch {values.batch}", measured,
               body, {"batch": values.batch, "examples": values.examples})


def speeds(result: Measurement, turn: str, clock: str) -> list[float]:
    """Returns examples per second of every round; CPU seconds are robust against other load."""
    return [rows / seconds for rows, seconds in zip(
        result.values(turn, "rows"), result.values(turn, clock), strict=True)]


if __name__ == "__main__":
    flags.DEFINE_list("cases", list(CASES), "Tasks, separated by commas.")
    flags.DEFINE_integer("examples", 640, "Examples per turn.", lower_bound=1)
    flags.DEFINE_integer("batch", 32, "Examples per batch.", lower_bound=1)
    command.run(main, __doc__, [*define_inputs(), "cases", "examples", "batch"], SYSTEMS, rounds=3)
