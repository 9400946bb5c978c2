"""Writes Hugging Face's directories, and converts the heads of fine-tuned models both ways.

`checkpoints/hugging_face.py` reads the directories. `HuggingFaceHead` in `tasks/kinds/kind.py` has
the layers of each task kind's head. Hugging Face's classification head has a hidden layer with
GELU; ours and Google's have none by default. Because gelu(x) - gelu(-x) = x, a hidden layer that
computes each logit and its negative preserves the output.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from safetensors.numpy import save

from electra_tf.checkpoints.hugging_face import (
    ARCHITECTURES,
    CONFIG_FILE,
    DISCRIMINATOR,
    FIXED,
    GENERATOR,
    OTHERS,
    SIZES,
    TOKENIZER_FILE,
    TOKENIZER_SETTINGS_FILE,
    WEIGHTS_FILE,
    Config,
    theirs_of,
    turned,
)
from electra_tf.checkpoints.pretrained import Pretrained
from electra_tf.checkpoints.run_directory import VOCABULARY_FILE
from electra_tf.checkpoints.weights import Weights, has_generator, require_exactly, require_networks
from electra_tf.config.model import EncoderConfig
from electra_tf.modeling.weight_table import discriminator, generator, whole_encoder
from electra_tf.platform.atomic_file import make_directory, write_atomically
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path
from electra_tf.tasks.kinds.registry import KINDS
from electra_tf.tasks.task import TaskSpec
from electra_tf.text import vocabulary as tokens
from electra_tf.text.tokenization import TextSettings
from electra_tf.text.tokenizer import LONG_WORD_CUT

HEAD = "head/"
_DEFAULT_LABELS = {"0": "LABEL_0", "1": "LABEL_1"}
"""Labels by id that transformers assumes where config.json has none."""
_REGRESSION, _CLASSIFICATION = "regression", "single_label_classification"
"""Values of problem_type in config.json."""
_Layer = tuple[np.ndarray, np.ndarray]
"""Kernel [inputs, outputs] and bias of a dense layer."""


def write(networks: Pretrained, directory: Path) -> None:
    """Writes a fine-tuned model, or `discriminator/` and, if there is one, `generator/`.

    Raises `UserError` for missing or unknown weights, or a head that Hugging Face doesn't have.
    """
    model = networks.model
    if networks.task is not None:
        head, config = _head_to_theirs(
            TaskSpec.of_facts(networks.task, networks.source), networks.weights, networks.source)
        shapes = whole_encoder(model.discriminator)
        require_exactly({name: value for name, value in networks.weights.items()
                         if not name.startswith(HEAD)}, shapes, networks.source)
        _write_network(networks, directory, model.discriminator, shapes, config, head)
        return
    require_networks(networks.weights, model, networks.source)
    parts = {DISCRIMINATOR: (model.discriminator, discriminator(model.discriminator).weights)}
    if has_generator(networks.weights):
        parts[GENERATOR] = model.generator, generator(model).weights
    for name, (encoder, shapes) in parts.items():
        _write_network(networks, directory / name, encoder, shapes,
                       {"architectures": [ARCHITECTURES[name]]}, {})


def _write_network(networks: Pretrained, directory: Path, encoder: EncoderConfig,
                   names: Iterable[str], config: Mapping[str, Any], head: Weights) -> None:
    """Writes the four files that transformers reads, and tokenizer.json if text is in NFC.

    `config` has further entries of config.json, `head` further weights in Hugging Face's form.
    """
    make_directory(directory)
    weights = {theirs_of(name): turned(name, networks.weights[name]) for name in names}
    content = save({name: np.ascontiguousarray(value) for name, value in (weights | head).items()},
                   metadata={"format": "pt"})
    write_atomically(directory / WEIGHTS_FILE, content)
    text, normalization = networks.text, networks.text.normalization
    config = {**config, **FIXED,
              **{theirs: getattr(encoder, ours) for ours, theirs in (SIZES | OTHERS).items()},
              "pad_token_id": text.vocabulary.pad_id, "torch_dtype": "float32"}
    settings = {"tokenizer_class":
                "PreTrainedTokenizerFast" if normalization.nfc else "ElectraTokenizer",
                "do_lower_case": normalization.lower_case,
                "strip_accents": normalization.strip_accents, "tokenize_chinese_chars": True,
                "model_max_length": encoder.max_position_embeddings, "pad_token": tokens.PAD,
                "unk_token": tokens.UNK, "cls_token": tokens.CLS, "sep_token": tokens.SEP,
                "mask_token": tokens.MASK}
    contents = {CONFIG_FILE: config, TOKENIZER_SETTINGS_FILE: settings}
    if normalization.nfc:
        contents[TOKENIZER_FILE] = _composing_tokenizer(text)
    for file, content in contents.items():
        write_atomically(directory / file, (json.dumps(content, indent=2) + "\n").encode())
    text.vocabulary.save(directory / VOCABULARY_FILE)


def _composing_tokenizer(text: TextSettings) -> dict[str, Any]:
    """Returns tokenizer.json for text in NFC, for which tokenizer_config.json has no setting.

    Its steps are those of `text.tokenizer`: BERT's cleaning, NFC, BERT's splitting, the cut of long
    words, WordPiece. Rows are [CLS] text [SEP] or [CLS] text [SEP] text [SEP].
    """
    normalization, ids = text.normalization, text.vocabulary.ids

    def special(token: str, segment: int = 0) -> dict[str, Any]:
        return {"SpecialToken": {"id": token, "type_id": segment}}

    first, second = ({"Sequence": {"id": name, "type_id": segment}}
                     for segment, name in enumerate("AB"))
    single = [special(tokens.CLS), first, special(tokens.SEP)]
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [
            {"id": ids[token], "content": token, "single_word": False, "lstrip": False,
             "rstrip": False, "normalized": False, "special": True}
            for token in tokens.SPECIAL_TOKENS],
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
             "strip_accents": normalization.strip_accents, "lowercase": normalization.lower_case},
            {"type": "NFC"}]},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "BertPreTokenizer"},
            {"type": "Split", "pattern": {"Regex": LONG_WORD_CUT}, "behavior": "Isolated",
             "invert": False}]},
        "post_processor": {
            "type": "TemplateProcessing", "single": single,
            "pair": [*single, second, special(tokens.SEP, 1)],
            "special_tokens": {token: {"id": token, "ids": [ids[token]], "tokens": [token]}
                               for token in (tokens.CLS, tokens.SEP)}},
        "decoder": {"type": "WordPiece", "prefix": tokens.CONTINUATION, "cleanup": False},
        "model": {"type": "WordPiece", "unk_token": tokens.UNK,
                  "continuing_subword_prefix": tokens.CONTINUATION,
                  "max_input_chars_per_word": tokens.MAX_WORD_CHARACTERS, "vocab": ids}}


def _head_to_theirs(spec: TaskSpec, weights: Weights, source: str
                    ) -> tuple[Weights, dict[str, Any]]:
    """Returns a head's weights in Hugging Face's form, and its entries of config.json."""
    form = KINDS[spec.kind].hugging_face
    ours = _our_layers(spec, weights, source)
    *hidden, (output, parts) = form.layers.items()
    # The converted head outputs a regression in the units of the labels.
    kernel = np.concatenate([ours[part][0] for part in parts], axis=1) * np.float32(spec.scale)
    bias = np.concatenate([ours[part][1] for part in parts])
    bias = bias * np.float32(spec.scale) + np.float32(spec.offset)
    layers = {theirs: ours[name] for theirs, (name,) in hidden if name in ours}
    if len(layers) < len(hidden):
        layers[hidden[0][0]], (kernel, bias) = _through_gelu(kernel, bias, source)
    layers[output] = kernel, bias
    config: dict[str, Any] = {"architectures": [form.architecture]}
    if spec.labels or form.problem_type:
        words = spec.label_words or ("LABEL_0",)
        config |= {"finetuning_task": spec.name,
                   "id2label": {str(index): word for index, word in enumerate(words)},
                   "label2id": {word: index for index, word in enumerate(words)}}
    if form.problem_type:
        config["problem_type"] = form.problem_type
    return {name: value for theirs, (kernel, bias) in layers.items()
            for name, value in ((f"{theirs}.weight", kernel.T), (f"{theirs}.bias", bias))}, config


def _our_layers(spec: TaskSpec, weights: Weights, source: str) -> dict[str, _Layer]:
    """Returns our head's layers by name; refuses more or fewer layers than Hugging Face's."""
    form = KINDS[spec.kind].hugging_face
    own = {name: value for name, value in weights.items() if name.startswith(HEAD)}
    inputs = weights["electra/encoder/layer_0/output/dense/bias"].shape[0]
    *hidden, (_, parts) = form.layers.items()
    sizes = {name: inputs for _, (name,) in hidden if f"{HEAD}{name}/kernel" in own}
    sizes |= dict.fromkeys(parts, len(spec.labels) or 1)
    shapes = {name: shape for layer, size in sizes.items() for name, shape in (
        (f"{HEAD}{layer}/kernel", (inputs, size)), (f"{HEAD}{layer}/bias", (size,)))}
    if own.keys() != shapes.keys() and form.settings:
        settings = " ".join(f"--set={name}={str(value).lower()}"
                            for name, value in form.settings.items())
        raise UserError(f"{source}: {form.architecture} has other layers than this head; train it "
                        f"again with {settings}, its other flags and a new --model_dir of "
                        "`python run_finetuning.py`.")
    require_exactly(own, shapes, source)
    return {layer: (own[f"{HEAD}{layer}/kernel"], own[f"{HEAD}{layer}/bias"]) for layer in sizes}


def _through_gelu(kernel: np.ndarray, bias: np.ndarray, source: str) -> tuple[_Layer, _Layer]:
    """Returns two layers that, with GELU between them, are equal to one dense layer."""
    hidden_size, outputs = kernel.shape
    rest = hidden_size - 2 * outputs
    if rest < 0:
        raise UserError(f"{source}: {outputs} labels don't fit into Hugging Face's head, whose "
                        f"hidden layer has {hidden_size} units; train it again with "
                        "--set task.hidden_layer=true, its other flags and a new --model_dir of "
                        "`python run_finetuning.py`.")
    first = np.concatenate([kernel, -kernel, np.zeros([hidden_size, rest], np.float32)], axis=1)
    first_bias = np.concatenate([bias, -bias, np.zeros(rest, np.float32)])
    identity = np.eye(outputs, dtype=np.float32)
    second = np.concatenate([identity, -identity, np.zeros([rest, outputs], np.float32)])
    return (first, first_bias), (second, np.zeros(outputs, np.float32))


def head_from_theirs(config: Config, weights: Weights, source: str
                     ) -> tuple[TaskSpec, dict[str, Any], Weights]:
    """Returns the task, the settings that build such a head, and its weights by our names.

    Raises `UserError` for missing or unknown weights, or labels without consecutive ids.
    """
    kinds = [kind for kind in KINDS.values()
             if kind.hugging_face.architecture == config.architecture]
    labels = _labels(config, source) if any(kind.labelled for kind in kinds) else ()
    problem = (_REGRESSION if config.problem_type == _REGRESSION or len(labels) == 1
               else _CLASSIFICATION)
    kind = next(kind for kind in kinds if kind.hugging_face.problem_type in (None, problem))
    labels = labels if kind.labelled else ()
    form, inputs = kind.hugging_face, config.hidden_size
    *hidden, (output, parts) = form.layers.items()
    sizes = {theirs: inputs for theirs, _ in hidden} | {output: len(parts) * (len(labels) or 1)}
    require_exactly(weights, {
        name: shape for theirs, size in sizes.items()
        for name, shape in ((f"{theirs}.weight", (size, inputs)), (f"{theirs}.bias", (size,)))},
        source)
    found = {}
    for theirs, ours in form.layers.items():
        kernels = np.split(weights[f"{theirs}.weight"].T, len(ours), axis=1)
        biases = np.split(weights[f"{theirs}.bias"], len(ours))
        for name, kernel, bias in zip(ours, kernels, biases, strict=True):
            found |= {f"{HEAD}{name}/kernel": kernel, f"{HEAD}{name}/bias": bias}
    return kind.converted(config.finetuning_task, labels), dict(form.settings), found


def _labels(config: Config, source: str) -> tuple[str, ...]:
    """Returns the labels in the order of their ids."""
    names = _DEFAULT_LABELS if config.id2label is None else config.id2label
    labels = tuple(names.get(str(index)) for index in range(len(names)))
    numbers = {label: index for index, label in enumerate(labels)}
    if None in labels or config.label2id not in (None, numbers) or len(numbers) < len(labels):
        raise UserError(f"{source}: id2label of config.json must name every label by its number, "
                        "from 0, and label2id must be its reverse. Received: "
                        f"{shown(names)}, {shown(config.label2id)}")
    return labels
