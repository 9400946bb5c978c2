"""What a turn of the serving benchmark answers, and how workers talk about it.

    > {"model": "bfloat16/1", "texts": "texts.json", "precision": "bfloat16", "threads": 2, ...}
    < {"label": "bfloat16, intra_op=1", "versions": {"TensorFlow": "2.20.0"}}
    > {"case": "16", "what": "check"}
    < {"probabilities": [[0.4, 0.6], ...], "tokens": [16, ...]}
    > {"case": "16", "what": "time", "batch": 1}
    < {"seconds": [0.0061, 0.0059, ...]}

Strings go in, probabilities and labels come out. A timed turn answers all texts of a case once, in
their order, and reports every call; some calls before it aren't counted, for the process was
stopped. Needs the standard library alone.
"""

import dataclasses
import json
import pathlib
import time
from collections.abc import Callable, Mapping, Sequence

from benchmarks.harness import worker

MAX_LENGTH = 128
"""Tokens that either side reads of a text, special ones included."""
FROZEN_WEIGHTS = "TF_ONEDNN_ASSUME_FROZEN_WEIGHTS"
"""Environment variable that TensorFlow reads."""
_UNCOUNTED = {1: 5}
"""Calls before a turn, by batch; elsewhere one."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Workload:
    """What a worker serves."""

    model: str
    """A directory: of one version of a SavedModel, or Hugging Face's."""
    texts: str
    """A file that `write_texts` wrote."""
    precision: str
    """"float32" or "bfloat16"."""
    autocast: bool = False
    """Whether PyTorch keeps a float32 model and chooses op by op what bfloat16 does."""
    intra_op: int
    """Threads that TensorFlow may use within one op."""
    threads: int
    """CPU cores to use."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Prepared:
    """A model that is loaded."""

    label: str
    versions: Mapping[str, str]
    answer: Callable[[list[str]], tuple[Sequence[str | bytes], Sequence[Sequence[float]]]]
    """Texts to their labels, and to the probabilities of all classes."""
    tokens: Callable[[list[str]], list[int]] | None = None
    """Texts to their numbers of tokens, where the tokenizer is the system's own."""


def write_texts(path: pathlib.Path, texts: Mapping[str, Sequence[str]]) -> None:
    """Writes the texts of every case."""
    path.write_text(json.dumps(texts), encoding="utf-8")


def serve(prepare: Callable[[Workload], Prepared]) -> None:
    """Answers requests until stdin closes."""
    def begin(opening: worker.Fields) -> tuple[worker.Fields, worker.Answer]:
        workload = Workload(**opening)
        texts = json.loads(pathlib.Path(workload.texts).read_text(encoding="utf-8"))
        prepared = prepare(workload)

        def answer(request: worker.Fields) -> worker.Fields:
            asked = texts[request["case"]]
            if request["what"] == "check":
                _labels, probabilities = prepared.answer(asked)
                return {"probabilities": probabilities,
                        "tokens": prepared.tokens and prepared.tokens(asked)}
            return {"seconds": _timed(prepared.answer, asked, request["batch"])}

        return {"label": prepared.label, "versions": prepared.versions}, answer

    worker.serve(begin)


def _timed(answer: Callable[[list[str]], object], texts: list[str], batch: int) -> list[float]:
    """Returns the seconds of every call."""
    batches = [texts[first:first + batch] for first in range(0, len(texts), batch)]
    for uncounted in batches[-_UNCOUNTED.get(batch, 1):]:
        answer(uncounted)
    seconds = []
    for asked in batches:
        start = time.perf_counter()
        answer(asked)
        seconds.append(time.perf_counter() - start)
    return seconds
