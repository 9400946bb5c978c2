"""Writes a directory with an ONNX file, its tokenizer, labels and card, compared before renaming.

The file must compute what the trained network does, and tokenizer.json must give the ids of this
program's tokenizer. With examples of dev, both number types are scored.
"""

import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from electra_tf.config.finetuning import LongTexts
from electra_tf.data.buckets import Row, make_batch, plan_in_order_of_length
from electra_tf.export import onnx_graph, onnx_tokenizer
from electra_tf.export.atomic_directory import atomic_directory
from electra_tf.export.checksums import write_checksums
from electra_tf.export.comparison import (
    Answers,
    Quantization,
    compare,
    network_function,
    probe_tokens,
)
from electra_tf.export.onnx_runtime import CONFIG_FILE, MODEL_FILE, OnnxModel
from electra_tf.export.saved_model import probes
from electra_tf.export.servable import Servable, ServedTask
from electra_tf.formats.pretrained import BERT_SIZES
from electra_tf.platform.atomic_file import write_json
from electra_tf.platform.errors import UserError
from electra_tf.tasks.kinds.base import RowResults
from electra_tf.tasks.kinds.long_texts import KEEP
from electra_tf.tasks.kinds.multilabel import decision_threshold
from electra_tf.tasks.registry import KINDS
from electra_tf.tasks.task import Example, Kind
from electra_tf.text.tokenization import TextSettings

_DEV_BATCH = 32
_MAX_BYTES = 2**31
"""Size that protocol buffers allow for a file."""


_TOLERANCE = {Quantization.NONE: 1e-5, Quantization.DYNAMIC_INT8: 1.0}
"""Largest accepted difference, relative for numbers above 1. For int8 it only detects broken files:
the accepted loss depends on the task, and `--dev` measures it."""


def export(model: Servable, text: TextSettings, directory: pathlib.Path, quantization: Quantization,
           dev: Sequence[Example] = (),
           add_files: Callable[[pathlib.Path], None] = lambda directory: None
           ) -> dict[str, Mapping[str, float]]:
    """Writes a directory, runs it, and keeps it if its outputs equal the network's.

    `dev` are examples to score; `add_files` adds files, such as a card. Returns the scores of
    float32 and of the quantized file. Raises `UserError` if the network cannot be exported, or its
    answers differ.
    """
    config = model.encoder.config
    num_bytes = 4 * sum(value.shape.num_elements() for value in (
        *model.encoder.variables, *model.head.variables))
    if num_bytes >= _MAX_BYTES:
        raise UserError(f"the network has {num_bytes / 1e9:.1f} GB, and an ONNX file holds at most "
                        "2.1 GB; export it with python -m electra_tf.apps.tools.export_model")
    if dev and model.network.spec.kind is Kind.SENTENCE_EMBEDDINGS:
        raise UserError("--dev scores classifiers, regressions and taggers; leave it out for "
                        "sentence embeddings.")
    tokens, run_network = probe_tokens(model), network_function(model)
    lines: list[str] = []
    scores: dict[str, Mapping[str, float]] = {}
    with atomic_directory(directory) as unfinished:
        unfinished.mkdir()
        onnx_tokenizer.write(text, unfinished, model.texts.max_length)
        write_json(unfinished / CONFIG_FILE, _config(model))
        add_files(unfinished)
        for kind in dict.fromkeys((Quantization.NONE, quantization)):
            graph = onnx_graph.build(model, quantized=kind is Quantization.DYNAMIC_INT8)
            (unfinished / MODEL_FILE).write_bytes(graph.SerializeToString())
            write_checksums(unfinished)
            exported = OnnxModel(unfinished)
            _compare_ids(exported, model)
            difference = compare(exported.score(*tokens), run_network, tokens, _TOLERANCE[kind])
            lines.append(f"{kind}: within {difference:.1e} of the trained network")
            if dev:
                scores[str(kind)] = _score(exported, model, dev)
        megabytes = (unfinished / MODEL_FILE).stat().st_size / 1e6
    print(f"exported {directory}: quantization {quantization}, {megabytes:,.1f} MB, takes rows of "
          f"up to {config.max_position_embeddings} tokens", *lines, sep="\n", flush=True)
    return scores


def _config(model: Servable) -> dict[str, Any]:
    """Returns config.json: Hugging Face's entries, and those of `OnnxConfig`."""
    config: dict[str, Any] = {"architectures": ["ElectraModel"], "id2label": {},
                              "keeps_tail": False, "label_threshold": None}
    if isinstance(model, ServedTask):
        network, spec = model.network, model.network.spec
        form, labels = KINDS[spec.kind].hugging_face, spec.label_words
        if network.config.long_texts is LongTexts.WINDOWS:
            raise UserError("the model reads long texts in windows (task.long_texts=windows), but "
                            "an ONNX file reads one row; export it with "
                            "python -m electra_tf.apps.tools.export_model")
        config = {"architectures": [form.architecture], "finetuning_task": spec.name,
                  "id2label": {str(index): label for index, label in enumerate(labels)},
                  "label2id": {label: index for index, label in enumerate(labels)},
                  "problem_type": form.problem_type,
                  "keeps_tail": network.config.long_texts is LongTexts.HEAD_TAIL,
                  "label_threshold": decision_threshold(network.config, network.threshold)
                  if spec.kind is Kind.MULTILABEL else None}
    return config | {
        "model_type": "electra", "hidden_act": "gelu", "layer_norm_eps": 1e-12,
        **{entry: getattr(model.encoder.config, name) for name, entry in BERT_SIZES.items()},
        "pad_token_id": model.texts.vocabulary.pad_id, "text_columns": list(model.columns),
        "max_seq_length": model.texts.max_length}


def _compare_ids(exported: OnnxModel, model: Servable) -> None:
    """Raises `UserError` if tokenizer.json gives other ids than this program's tokenizer."""
    columns, _ = probes(model.columns)
    form = model.network.config.long_texts if isinstance(model, ServedTask) else LongTexts.TRUNCATE
    expected, _ = model.texts.encode_counted(*map(tf.constant, columns.values()), keep=KEEP[form])
    for actual, values in zip(exported.encode(*columns.values()), expected, strict=True):
        if not np.array_equal(actual, tf.cast(values, tf.int64).numpy()):
            raise UserError("tokenizer.json gives other ids than this program's tokenizer for "
                            f"{str(columns)[:200]}; nothing was exported.")


def _score(exported: OnnxModel, model: ServedTask, dev: Sequence[Example]) -> Mapping[str, float]:
    """Returns the scores of an exported task on examples."""
    network = model.network
    kind, pad_id = KINDS[network.spec.kind], model.texts.vocabulary.pad_id
    encoded = kind.encode(network.spec, dev, model.texts, network.config)
    rows, results = encoded.rows, [{} for _ in encoded.rows]
    for indices in plan_in_order_of_length([len(row.ids) for row in rows], _DEV_BATCH):
        part = [rows[index] for index in indices]
        batch = make_batch(part, len(part), [max(len(row.ids) for row in part)], pad_id)
        outputs = exported.score(batch.ids, batch.segment_ids, batch.valid)
        for position, index in enumerate(indices):
            results[index] = _details(network.spec.kind, rows[index], {
                name: values[position] for name, values in outputs.items()})
    return encoded.score(results, network.threshold).scores


def _details(kind: Kind, row: Row, outputs: Answers) -> RowResults:
    """Returns the details of the objective for one row."""
    if kind is Kind.REGRESSION:
        return {"predictions": outputs["score"]}
    if kind is Kind.TAGGING:
        probabilities = outputs["probabilities"][row.word_targets["first_piece"]]
        return {"tags": probabilities.argmax(axis=1), "probability": probabilities.max(axis=1)}
    return {"logits": outputs["logits"]}
