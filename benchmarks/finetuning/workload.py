"""What a turn of the fine-tuning benchmark computes, and how workers talk about it.

    > {"rows": "rows.npz", "batch": 32, "precision": "bfloat16", "grouped": false, "threads": 2}
    < {"label": "bfloat16", "versions": {"TensorFlow": "2.20.0"}}
    > {"what": "train"}
    < {"seconds": 8.1, "examples": 1600}

A turn goes once over all rows, to train on them or to predict. The first turn of either kind holds
tracing and compiling. Needs NumPy alone: both environments have it.
"""

import dataclasses
import time
from collections.abc import Callable, Mapping

import numpy as np

from benchmarks.harness import worker

PAD_ID = 0
"""Of BERT's vocabulary."""
CLASSES = 2
DROPOUT = 0.1
LEARNING_RATE, WEIGHT_DECAY, ADAM_EPSILON, CLIP_NORM = 3e-4, 0.01, 1e-6, 1.0
VOCAB_SIZE, EMBEDDING_SIZE, HIDDEN_SIZE, LAYERS, HEADS, INTERMEDIATE_SIZE = (
    30522, 128, 256, 12, 4, 1024)
"""ELECTRA-Small's."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Workload:
    """What a worker is asked to do in every turn."""

    rows: str
    """A file that `write_rows` wrote."""
    batch: int
    precision: str
    """"float32" or "bfloat16"."""
    grouped: bool = False
    """Batches of similar length, where a system leaves the choice; else shuffled or in order."""
    threads: int
    """CPU cores to use."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Prepared:
    """A system that is built."""

    label: str
    versions: Mapping[str, str]
    turns: Mapping[str, Callable[[], None]]
    """"train" and "infer": goes once over all rows."""


def write_rows(path: str, ids: list[np.ndarray], labels: np.ndarray) -> None:
    """Writes examples: token ids, each of its own length, and classes."""
    np.savez(path, ids=np.concatenate(ids), labels=labels,
             ends=np.cumsum([len(one) for one in ids]))


def read_rows(path: str) -> tuple[list[np.ndarray], np.ndarray]:
    """Returns what `write_rows` wrote."""
    with np.load(path) as data:
        return np.split(data["ids"], data["ends"][:-1]), data["labels"]


def serve(prepare: Callable[[Workload], Prepared]) -> None:
    """Answers requests until stdin closes."""
    def begin(opening: worker.Fields) -> tuple[worker.Fields, worker.Answer]:
        workload = Workload(**opening)
        examples = len(read_rows(workload.rows)[1])
        prepared = prepare(workload)

        def answer(request: worker.Fields) -> worker.Fields:
            start = time.perf_counter()
            prepared.turns[request["what"]]()
            return {"seconds": time.perf_counter() - start, "examples": examples}

        return {"label": prepared.label, "versions": prepared.versions}, answer

    worker.serve(begin)
