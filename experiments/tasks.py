"""What the encoders of a sweep are judged by: tasks of run_finetuning.py, by their names there."""

import dataclasses
from collections.abc import Mapping

from electra_tf.platform import strict_json
from electra_tf.platform.errors import UserError
from electra_tf.platform.settings import require_one_of
from electra_tf.platform.storage import Path

_MOST_BYTES = 16 << 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class Judge:
    """A task, and where its files are."""

    folder: str
    """Below --tasks_dir."""
    metric: str = ""
    """Runs are compared by it; "" for the first that run_finetuning.py names."""
    trained: bool = True
    """Whether the encoder is fine-tuned; False where it is asked as it is."""


_GLUE = ("cola", "sst2", "mrpc", "stsb", "qqp", "mnli", "qnli", "rte", "wnli")
JUDGES = {
    "chunk": Judge(folder="conll2000"), "ner": Judge(folder="conll2003"),
    **{name: Judge(folder="glue") for name in _GLUE},
    "stsb": Judge(folder="glue", metric="spearman"),  # As in the paper's tables.
    "squad": Judge(folder="squad"), "squad2": Judge(folder="squad"),
    **{name: Judge(folder="mrqa", metric="f1")
       for name in ("searchqa", "triviaqa", "newsqa", "naturalqs")},
    "blimp": Judge(folder="blimp", trained=False),
}


def require_known(names: tuple[str, ...], place: str) -> None:
    """Raises `UserError` for a task that there isn't."""
    for name in names:
        require_one_of(JUDGES, f"{place}: a task", name)


def require_files(names: tuple[str, ...], tasks_dir: Path) -> None:
    """Raises `UserError` for a task whose directory isn't there, before hours of training."""
    for name in names:
        directory = tasks_dir / JUDGES[name].folder
        if not directory.exists():
            raise UserError(f"{name} needs {directory}, which doesn't exist: put its files there, "
                            "name another --tasks_dir, or leave it out by --tasks.")


def flags_of(task: str, tasks_dir: Path) -> list[str]:
    """Returns the flags of run_finetuning.py that name the task and its files."""
    return [f"--task={task}", f"--data_dir={tasks_dir / JUDGES[task].folder}"]


def scores(task: str, model_dir: Path) -> Mapping[str, float]:
    """Returns metric -> score of a finished run, the main one first; `UserError` if unreadable."""
    # Here, because it takes TensorFlow, which a sweep that is refused doesn't wait for.
    from electra_tf.checkpoints.run_directory import RESULTS_FILE
    from electra_tf.finetuning.pseudo_likelihood import RESULTS_FILE as BLIMP_RESULTS

    if not JUDGES[task].trained:
        return strict_json.read(model_dir / BLIMP_RESULTS, dict, most=_MOST_BYTES)["mean"]
    found = strict_json.read(model_dir / RESULTS_FILE, dict, most=_MOST_BYTES)
    metrics = next(iter(found["summary"].values()))
    first = JUDGES[task].metric or found["metrics"][0]
    names = [first, *(name for name in found["metrics"] if name != first)]
    return {name: metrics[name]["mean"] for name in names if name in metrics}
