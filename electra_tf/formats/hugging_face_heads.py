"""Declares config.json, and converts the heads of fine-tuned models to Hugging Face's and back.

`HuggingFaceHead` in `tasks/kinds/base.py` has the layers of each task kind's head. Hugging Face's
classification head has a hidden layer with GELU; ours and Google's have none by default. Because
gelu(x) - gelu(-x) = x, a hidden layer that computes each logit and its negative preserves the
output.
"""

import dataclasses
import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Interval

from electra_tf.checkpoints.weights import Weights, require_exactly
from electra_tf.config.finetuning import TaskConfig
from electra_tf.config.model import ModelConfig
from electra_tf.config.overrides import override
from electra_tf.core import strict_json
from electra_tf.core.command_line import command
from electra_tf.core.errors import UserError, note_once, shown
from electra_tf.formats.pretrained import Checkpoint, Pooling
from electra_tf.tasks import files, glue
from electra_tf.tasks.kinds.base import HuggingFaceHead, TaskKind
from electra_tf.tasks.registry import KINDS, recipe
from electra_tf.tasks.task import LABEL_KINDS, Kind, TaskSpec

HEAD = "head/"
HIDDEN, _NORM = "hidden", f"{HEAD}hidden/LayerNorm/gamma"
"""Names of a head's hidden layer, and of its norm in ModernBERT's heads."""
MODERNBERT = "modernbert"
ARCHITECTURES = frozenset(
    kind.hugging_face.architecture for kind in KINDS.values() if kind.hugging_face.layers)
"""Classes whose heads are converted."""
_REGRESSION, _CLASSIFICATION, _MULTILABEL = _PROBLEMS = (
    "regression", "single_label_classification", "multi_label_classification")
"""Values of problem_type in config.json."""
PAIR = ("text_1", "text_2")
"""Columns of texts of a CrossEncoder of sentence-transformers, whose files don't name them."""
_Layer = tuple[np.ndarray, np.ndarray]
"""Kernel [inputs, outputs] and bias of a dense layer."""


class TaskEntry(strict_json.Object):
    """An entry that transformers ignores: columns of a task's files, scores and settings."""

    texts: tuple[str, ...]
    label: str
    key: str
    metrics: tuple[str, ...]
    settings: dict[str, Any]

    def describe(self, spec: TaskSpec) -> TaskSpec:
        """Returns a task with these columns and scores."""
        return dataclasses.replace(spec, text_columns=self.texts, label_column=self.label,
                                   key_column=self.key, metrics=self.metrics)


class Config(strict_json.OpenObject):
    """The entries of config.json that are read."""

    model_type: Literal["electra", "bert", "roformer", MODERNBERT] | None = None
    hidden_act: Literal["gelu", "gelu_python"] = "gelu"
    layer_norm_eps: Annotated[float, Interval(ge=1e-12, le=1e-12)] = 1e-12
    position_embedding_type: Literal["absolute"] = "absolute"
    rotary_value: Literal[False] = False
    is_decoder: Literal[False] = False
    add_cross_attention: Literal[False] = False
    vocab_size: int
    embedding_size: int | None = None
    """E; BERT has no such entry, its embeddings have the hidden size."""
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int
    type_vocab_size: int = 2
    attention_probs_dropout_prob: float = 0.1
    initializer_range: float = ModelConfig.initializer_range
    architectures: tuple[str, ...] | None = None
    tie_word_embeddings: bool = True
    pruned_heads: dict[str, None] | None = None
    per_layer_config: dict[str, None] | None = None
    id2label: dict[str, Any] | None = None
    label2id: dict[str, Any] | None = None
    problem_type: str | None = None
    finetuning_task: str | None = None
    hidden_dropout_prob: float = 0.1
    classifier_dropout: float | None = None
    classifier_pooling: Literal["cls", "mean"] = "cls"
    electra_tf: TaskEntry | None = None
    sentence_transformers: Any = None
    """This entry or the next one marks a CrossEncoder."""
    sbert_ce_default_activation_function: Any = None

    @property
    def architecture(self) -> str:
        """Name of the network's class; empty if the file has none."""
        return ", ".join(self.architectures or ())


def task_config(checkpoint: Checkpoint) -> TaskConfig:
    """Returns all settings of the task of a fine-tuned model."""
    config = recipe(checkpoint.task.name, checkpoint.config)
    return override(config, checkpoint.task_settings).task


def to_hugging_face(checkpoint: Checkpoint) -> tuple[Weights, dict[str, Any]]:
    """Returns weights and config.json of Hugging Face's head; `UserError` for other layers."""
    spec, source = checkpoint.task, checkpoint.source
    modern = checkpoint.config.is_modern
    form, inputs = _form(KINDS[spec.kind], modern), checkpoint.config.hidden_size
    head = {name: value for name, value in checkpoint.weights.items() if name.startswith(HEAD)}
    precision = {name: value for name, value in checkpoint.task_settings.items()
                 if name == "training.precision"}
    if not form.layers:  # The files of sentence-transformers have the settings.
        return {}, {"architectures": [form.architecture], "electra_tf": _entry(spec, precision)}

    # Shapes that the layers of Hugging Face's class have; a hidden layer can be missing.
    *hidden, output = form.layers
    has_hidden, outputs = modern or f"{HEAD}{HIDDEN}/kernel" in head, len(spec.labels) or 1
    layers = {name: parts for name, parts in _stored_names(form, modern).items()
              if has_hidden or name.startswith(output)}
    shapes = {part: _shape(part, inputs, outputs if name.startswith(output) else inputs)
              for name, parts in layers.items() for part in parts}
    if head.keys() != shapes.keys() and form.settings:
        settings = " ".join(f"--set={name}={str(value).lower()}"
                            for name, value in form.settings.items())
        name = form.architecture.replace("Electra", "ModernBert" if modern else "Electra")
        raise UserError(f"{source}: {name} has other layers than this head; train it "
                        f"again with `{command('finetune')} {settings}`, its other flags and a new "
                        "--model_dir.")
    require_exactly(head, shapes, source)

    # The layers of that class, with parts of one output side by side.
    weights = {name: np.concatenate([head[part] for part in parts], axis=-1)
               for name, parts in layers.items()}
    # The converted head outputs a regression in the units of the labels.
    scale, offset = spec.float32_units
    kernel, bias = weights[f"{output}.weight"] * scale, weights[f"{output}.bias"] * scale + offset
    if hidden and not has_hidden:
        first, (kernel, bias) = _through_gelu(kernel, bias, source)
        weights |= {f"{hidden[0]}.weight": first[0], f"{hidden[0]}.bias": first[1]}
    weights |= {f"{output}.weight": kernel, f"{output}.bias": bias}

    # Entries of config.json, with the settings that are not the recipe's.
    config = head_entries(spec)
    task, default = task_config(checkpoint), recipe(spec.name, checkpoint.config).task
    stored = {"task.dropout", "task.max_seq_length", "task.classifier_pooling", *form.settings}
    config |= {"classifier_dropout": task.dropout, "electra_tf": _entry(spec, precision | {
        f"task.{name}": value for name, value in vars(task).items()
        if value != getattr(default, name) and f"task.{name}" not in stored})}
    if modern:
        config["classifier_pooling"] = task.classifier_pooling
    return {name: value.T for name, value in weights.items()}, config


def _form(kind: TaskKind, modern: bool) -> HuggingFaceHead:
    """Returns the head of a kind's class of ELECTRA or of ModernBERT."""
    form = kind.hugging_face
    if not modern or not form.layers:
        return form
    *_, outputs = form.layers.values()
    return dataclasses.replace(
        form, layers={"head.dense": (HIDDEN,), "classifier": outputs},
        settings={**form.settings, "task.hidden_layer": True})


def _stored_names(form: HuggingFaceHead, modern: bool) -> dict[str, tuple[str, ...]]:
    """Returns a class's weights -> ours, of which several are parts of one."""
    names = {f"{layer}.{theirs}": tuple(f"{HEAD}{part}/{ours}" for part in parts)
             for layer, parts in form.layers.items()
             for theirs, ours in (("weight", "kernel"), ("bias", "bias"))}
    if modern:
        del names["head.dense.bias"]
        names["head.norm.weight"] = (_NORM,)
    return names


def _shape(name: str, inputs: int, outputs: int) -> tuple[int, ...]:
    """Returns the shape of one of our weights."""
    return (inputs, outputs) if name.endswith("/kernel") else (outputs,)


def head_entries(spec: TaskSpec) -> dict[str, Any]:
    """Returns the entries of config.json that describe a head."""
    form = KINDS[spec.kind].hugging_face
    config: dict[str, Any] = {"architectures": [form.architecture]}
    if spec.labels or form.problem_type:
        words = spec.label_words or ("LABEL_0",)
        config |= {"finetuning_task": spec.name,
                   "id2label": {str(index): word for index, word in enumerate(words)},
                   "label2id": {word: index for index, word in enumerate(words)}}
    if form.problem_type:
        config["problem_type"] = form.problem_type
    return config


def _entry(spec: TaskSpec, settings: dict[str, Any]) -> dict[str, Any]:
    return {"texts": list(spec.text_columns), "label": spec.label_column, "key": spec.key_column,
            "metrics": list(spec.metrics), "settings": settings}


def _through_gelu(kernel: np.ndarray, bias: np.ndarray, source: str) -> tuple[_Layer, _Layer]:
    """Returns two layers that, with GELU between them, are equal to one dense layer."""
    # h = gelu([W, -W, 0] x + [b, -b, 0]), y = [I; -I; 0] h = gelu(Wx + b) - gelu(-Wx - b) = Wx + b.
    hidden_size, outputs = kernel.shape
    unused = hidden_size - 2 * outputs
    if unused < 0:
        raise UserError(f"{source}: {outputs} labels don't fit into Hugging Face's head, whose "
                        f"hidden layer has {hidden_size} units; train it again with "
                        f"`{command('finetune')} --set task.hidden_layer=true`, its other flags "
                        "and a new --model_dir.")
    first = np.concatenate([kernel, -kernel, np.zeros([hidden_size, unused], np.float32)], axis=1)
    first_bias = np.concatenate([bias, -bias, np.zeros(unused, np.float32)])
    identity = np.eye(outputs, dtype=np.float32)
    second = np.concatenate([identity, -identity, np.zeros([unused, outputs], np.float32)])
    return (first, first_bias), (second, np.zeros(outputs, np.float32))


def from_hugging_face(
        architecture: str, config: Config, tensors: dict[str, np.ndarray], source: str,
        text_columns: Sequence[str] = ()) -> tuple[TaskSpec, dict[str, Any], Weights]:
    """Returns the task, the settings that build such a head, and its weights by our names.

    Removes the head's weights from `tensors`. Raises `UserError` for missing or unknown weights, a
    regression of several numbers, or labels without consecutive ids.
    """
    if config.problem_type not in (None, *_PROBLEMS):
        raise UserError(f"{source}: problem_type of config.json must be one of "
                        f"{', '.join(_PROBLEMS)}. Received: {shown(config.problem_type)}. The "
                        f"encoder can be fine-tuned: {command('finetune')} "
                        f"--init_checkpoint={source}")

    # The kind of the task: by the class, the problem and the number of outputs.
    modern = config.model_type == MODERNBERT
    kinds = [kind for kind in KINDS.values() if kind.hugging_face.architecture == architecture]
    *_, (output, parts) = _form(kinds[0], modern).layers.items()
    outputs = len(tensors.get(f"{output}.weight", ()))
    problem = (config.problem_type if config.problem_type in (_REGRESSION, _MULTILABEL)
               else _REGRESSION if outputs == 1 else _CLASSIFICATION)
    kind = next(kind for kind in kinds if kind.hugging_face.problem_type in (None, problem))
    form, inputs = _form(kind, modern), config.hidden_size
    if form.problem_type == _REGRESSION and outputs > 1:
        raise UserError(f"{source}: problem_type of config.json is {_REGRESSION}, and the head has "
                        f"{outputs} outputs; regressions of one number are supported. The encoder "
                        f"can be fine-tuned: {command('finetune')} --init_checkpoint={source}")

    # The head's weights, all of them and no others.
    size = outputs if kind.kind in LABEL_KINDS else len(parts)
    modules = tuple(f"{layer.split('.')[0]}." for layer in form.layers)
    weights = {name: tensors.pop(name) for name in list(tensors) if name.startswith(modules)}
    layers = _stored_names(form, modern)
    require_exactly(weights, {
        name: _shape(part, inputs, size if name.startswith(output) else inputs)[::-1]
        for name, (part, *_) in layers.items()}, source)
    labels = _read_labels(config, outputs, source) if kind.kind in LABEL_KINDS else ()

    # Our layers, which may be parts of one of Hugging Face's.
    head = {part: value for name, parts in layers.items() for part, value in zip(
        parts, np.split(weights[name].astype(np.float32).T, len(parts), axis=-1), strict=True)}

    # The task's columns and settings; files of others don't say that a model reads pairs.
    spec, settings = _named_task(kind, config.finetuning_task, labels), dict(form.settings)
    settings["task.dropout"] = (config.hidden_dropout_prob if config.classifier_dropout is None
                                else config.classifier_dropout)
    if modern and form.problem_type:
        settings["task.classifier_pooling"] = config.classifier_pooling
    if entry := config.electra_tf:
        spec, settings = entry.describe(spec), settings | entry.settings
    elif form.problem_type and (
            config.sentence_transformers or config.sbert_ce_default_activation_function):
        text_columns = text_columns or PAIR
    if text_columns:
        spec = dataclasses.replace(spec, text_columns=tuple(text_columns))
    elif entry is None and form.problem_type and spec.text_columns == TaskSpec.text_columns:
        note_once(f"{source} is read as a model of one text, because config.json does not name a "
                  f"task of pairs{files.PAIRS}.")
    return spec, settings, head


def _named_task(kind: TaskKind, name: str | None, labels: tuple[str, ...]) -> TaskSpec:
    """Returns GLUE's task of this name and label words, otherwise one named like the kind.

    That of numbers or other labels has the columns of GLUE's task if these are a pair.
    """
    # A task of GLUE counts with its own labels.
    task = glue.TASKS.get(name)
    if task and labels and labels == task.spec.label_words:
        return task.spec
    # Otherwise the kind, with the columns of GLUE's task if others fine-tuned on its pairs.
    spec = kind.build_spec(str(kind.kind), labels)
    task = glue.TASKS.get(re.sub("^glue[-_:/]|[-_]mm$|-", "", (name or "").lower()))
    is_pair = task and len(task.spec.text_columns) == 2 and kind.hugging_face.problem_type
    return dataclasses.replace(spec, text_columns=task.spec.text_columns,
                               label_column=task.spec.label_column) if is_pair else spec


def _read_labels(config: Config, outputs: int, source: str) -> tuple[str, ...]:
    """Returns the labels of a head's outputs: those of id2label, otherwise LABEL_0 and so on."""
    # A label for every output, each once.
    ids = tuple(map(str, range(outputs)))
    names = config.id2label or {index: f"LABEL_{index}" for index in ids}
    labels = tuple(str(names[index]) for index in ids
                   if isinstance(names.get(index), str | int | float))
    if not len(names) == len(set(labels)) == outputs:
        raise UserError(f"{source}: id2label of config.json must name every label by its number, "
                        f"from 0, each differently, for the {outputs} outputs of the head. "
                        f"Received: {shown(names)}")
    stated = {str(index): label for label, index in (config.label2id or {}).items()}
    if stated not in ({}, dict(zip(ids, labels, strict=True))):
        note_once(f"{source}: label2id of config.json is not the reverse of id2label, which gives "
                  "the labels, or LABEL_0, LABEL_1 and so on without it.")
    return labels


def embedding_task(config: Config, pooling: Pooling) -> tuple[TaskSpec, dict[str, Any]]:
    """Returns the task of a model of sentence embeddings, and the settings of its pooling."""
    spec = KINDS[Kind.SENTENCE_EMBEDDINGS].build_spec(str(Kind.SENTENCE_EMBEDDINGS))
    return config.electra_tf.describe(spec), {
        "task.pooling": pooling.modes[0],
        "task.max_seq_length": pooling.max_length or config.max_position_embeddings,
        **config.electra_tf.settings}
