"""Writes the texts, and one model with new weights in every served format."""

import itertools
import pathlib
from collections.abc import Sequence

import tensorflow as tf

from benchmarks.serving.answers import MAX_LENGTH
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import pretraining_config
from electra_tf.export import onnx_graph, saved_model, servable, tflite
from electra_tf.export.comparison import Quantization
from electra_tf.formats import pretrained
from electra_tf.formats.pretrained import Format, Pretrained
from electra_tf.platform.errors import UserError
from electra_tf.tasks import glue
from electra_tf.tasks.kinds.texts import ClassificationObjective
from electra_tf.tasks.registry import recipe
from electra_tf.text.tokenization import TextSettings
from electra_tf.text.tokenizer import Tokenizer
from electra_tf.text.vocabulary import Vocabulary

_INITIALIZER_RANGE = 0.1
"""Standard deviation of new weights. With 0.02, all texts would get nearly equal probabilities,
which would hide differences between systems; with 0.1, probabilities differ by 0.2."""


def write(directory: pathlib.Path, vocabulary: Vocabulary, *, size: str) -> None:
    """Writes a classifier of SST-2's classes in all formats.

    They are `bfloat16/1`, `float32/1`, `onnx_float32`, `onnx_int8`, `int8.tflite` and
    `hugging_face`.
    """
    spec = glue.TASKS["sst2"].spec
    config = override(
        recipe(spec.name, pretraining_config(size).model),
        {"model.vocab_size": vocabulary.size, "task.max_seq_length": MAX_LENGTH,
         "task.hidden_layer": True, "model.initializer_range": _INITIALIZER_RANGE})
    # With the hidden layer of Hugging Face's head.
    model = ClassificationObjective(spec, config.task).build_model(
        config.model, seed=1, policy="float32")
    text = TextSettings(vocabulary=vocabulary)
    networks = Pretrained(
        source="new weights", model=config.model, text=text, task=spec.facts(),
        task_settings={"task.hidden_layer": True, "task.max_seq_length": MAX_LENGTH},
        weights={variable.name.split(":")[0]: variable.numpy() for variable in model.variables})
    for precision in ("bfloat16", "float32"):
        saved_model.export(
            servable.build(networks), directory / precision / "1", precision)
    served = servable.build(networks)
    for name, quantization in (("float32", Quantization.NONE), ("int8", Quantization.DYNAMIC_INT8)):
        onnx_graph.export(served, networks.text, directory / f"onnx_{name}", quantization)
    tflite.export(served, directory / "int8.tflite", Quantization.DYNAMIC_INT8, None)
    pretrained.write(networks, directory / "hugging_face", Format.HUGGING_FACE)


def texts_of_length(sentences: Sequence[str], vocabulary: Vocabulary, tokens: int | None,
                    count: int) -> list[str]:
    """Returns `count` texts of exactly `tokens` tokens, [CLS] and [SEP] included.

    They consist of the sentences' words that are one token, in order; None: of whole sentences.
    Both are repeated if there are too few. Raises `UserError` if no word is a single token.
    """
    if tokens is None:
        return list(itertools.islice(itertools.cycle(sentences), count))
    words = [word for sentence in sentences for word in sentence.split()]
    tokenizer = Tokenizer(TextSettings(vocabulary=vocabulary))
    pieces = tokenizer.tokenize(tf.constant(words)).row_lengths().numpy()
    single = [word for word, size in zip(words, pieces, strict=True) if size == 1]
    if not single:
        raise UserError("no word of the sentences is in the vocabulary; give the --vocab_file that "
                        "fits the language of --data_dir.")
    endless = itertools.cycle(single)
    return [" ".join(itertools.islice(endless, tokens - 2)) for _ in range(count)]
