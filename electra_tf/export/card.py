"""Writes a model's card, README.md, and the curves that the card shows."""

import pathlib
import re
from typing import Any

import jinja2
import yaml

from electra_tf.checkpoints import run_directory
from electra_tf.checkpoints.run_directory import RESULTS_FILE, SETTINGS_FILE
from electra_tf.core import hub, strict_json
from electra_tf.core.storage import Path
from electra_tf.data.manifest import Manifest
from electra_tf.formats.pretrained import Checkpoint
from electra_tf.tasks.registry import KINDS
from electra_tf.tasks.task import Kind

_TEMPLATE = pathlib.Path(__file__).parent / "templates" / "card.md"
_PIPELINES = {"ElectraForSequenceClassification": "text-classification",
              "ElectraForTokenClassification": "token-classification",
              "ElectraForQuestionAnswering": "question-answering"}
"""Class in transformers -> the Hub's task."""
_CURVES = ("loss_curves.png", "learning_curve.png")


def write(directory: pathlib.Path, checkpoint: Checkpoint, source: Path, *, title: str,
          license: str = "", records: Manifest | None = None,
          transformers: str = "", saved_model: bool = False, onnx: str = "") -> None:
    """Writes the card, and the curves that it shows, into a model's directory.

    Args:
        directory: directory of the model, on this machine.
        checkpoint: the model.
        source: where the model was read. Settings, scores and curves come from a run's directory.
        title: name or directory by which users load the model.
        license: the Hub's identifier of the license; "" leaves it open, because the license of the
            training text and of the initial weights decides.
        records: manifest of the records that the model was trained on.
        transformers: name or directory that transformers loads; "" for none.
        saved_model: True if the directory is a SavedModel.
        onnx: quantization of the ONNX file in the directory; "" without one.
    """
    # What the run's directory says: task, curves, and what it was initialized from.
    saved = run_directory.read_identity(source) if (source / SETTINGS_FILE).exists() else {}
    task = checkpoint.task
    architecture = (KINDS[task.kind].hugging_face.architecture if task else
                    "ElectraForPreTraining" if checkpoint.has_discriminator else "ElectraModel")
    curves = next((name for name in _CURVES if saved and (source / name).exists()), "")
    if curves:
        (directory / curves).write_bytes((source / curves).read_bytes())
    base = saved.get("initial", checkpoint.source)
    base = "" if base in (None, "none") else _public(base)

    # The metadata by which the Hub finds and shows a model.
    metadata: dict[str, Any] = {"library_name": "onnx" if onnx else "transformers",
                                "tags": ["electra", "electra-tf"]}
    if license:
        metadata["license"] = license
    if match := hub.MODEL_NAME.fullmatch(base):
        metadata["base_model"] = match[2]
    if architecture in _PIPELINES:
        metadata["pipeline_tag"] = _PIPELINES[architecture]
    if task and task.kind is Kind.SENTENCE_EMBEDDINGS:
        metadata |= {"library_name": "sentence-transformers", "pipeline_tag": "sentence-similarity"}

    # The text, without the empty lines of parts that were left out.
    columns, scores = _read_scores(source) if saved else ((), {})
    template = jinja2.Template(_TEMPLATE.read_text(encoding="utf-8"), trim_blocks=True,
                               lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    text = template.render(
        metadata=yaml.safe_dump(metadata, sort_keys=True), title=title, task=task,
        checkpoint=checkpoint, model=checkpoint.config, source=_public(checkpoint.source),
        base=base, license=license, curves=curves, columns=columns, scores=scores,
        parameters=sum(value.size for value in checkpoint.weights.values()),
        records=records, digest=saved.get("dataset", saved.get("data")),
        settings=run_directory.settings_of(saved), transformers=transformers,
        architecture=architecture, saved_model=saved_model, onnx=onnx)
    text = re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"
    (directory / "README.md").write_text(text, encoding="utf-8")


def _public(source: str) -> str:
    """Returns a source without the directories of this machine."""
    return source.rpartition("/")[2] if source.startswith("/") else source


def _read_scores(source: Path) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Returns the columns of a run's scores, and the cells of each row by its name."""
    # A fine-tuned run: mean and best of its trials for every metric of every split.
    if (source / RESULTS_FILE).exists():
        results = strict_json.read(
            source / RESULTS_FILE, Any, max_bytes=run_directory.MAX_RESULT_BYTES)
        return ("mean", "best"), {
            f"{split}, {metric}": tuple(_shown(values[name]) for name in ("mean", "best"))
            for split, metrics in results["summary"].items() for metric, values in metrics.items()}
    # Otherwise the last evaluation: scores, or scores by split.
    path = source / run_directory.EVALUATION_FILE
    if not path.exists():
        return (), {}
    scores = strict_json.read(path, dict[str, float | None | dict[str, float | None]])
    step = scores.pop("step", None)
    for split in [name for name, value in scores.items() if isinstance(value, dict)]:
        scores |= {f"{split}, {name}": value for name, value in scores.pop(split).items()}
    return (f"step {step:,.0f}" if step else "value",), {
        name: (_shown(value),) for name, value in scores.items()}


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
