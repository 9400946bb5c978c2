"""Reads and writes Hugging Face's directories: config.json, weights and the tokenizer's files.

transformers saves the two networks separately, each with a copy of the embeddings: a pair is a
directory with `discriminator/` and `generator/`, or two models of the Hub. A fine-tuned model is
one directory. The modules `hugging_face_*` read its parts, whose names they have.
"""

import contextlib
import dataclasses
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from safetensors.numpy import save

from electra_tf.checkpoints.weights import ENCODER, Weights, require_exactly
from electra_tf.config.finetuning import LongTexts
from electra_tf.config.model import EncoderConfig, ModelConfig, Positions, Tying
from electra_tf.core import hub, strict_json
from electra_tf.core.atomic_file import make_directory, write_atomically, write_json
from electra_tf.core.command_line import command
from electra_tf.core.errors import UserError, note, note_once
from electra_tf.core.storage import MIB, Path
from electra_tf.formats import (
    hugging_face_heads,
    modernbert,
    parts,
    roformer,
    sentence_transformers,
)
from electra_tf.formats.hugging_face_heads import Config
from electra_tf.formats.hugging_face_tokenizer import (
    CONFIG_FILE,
    TOKENIZER_FILES,
    read_max_length,
    read_text,
    write_text,
)
from electra_tf.formats.hugging_face_weights import (
    ADAPTER_FILE,
    WEIGHTS_FILE,
    WEIGHTS_FILES,
    read_weights,
    weights_file,
)
from electra_tf.formats.pretrained import BERT_NAMES, GENERATOR_BIAS, Checkpoint
from electra_tf.modeling.parameter_shapes import GENERATOR, RESTORER, Shapes, full_encoder
from electra_tf.modeling.specs import discriminator, language_model
from electra_tf.text.normalization import TextSettings

DISCRIMINATOR = "discriminator"
ARCHITECTURES = {DISCRIMINATOR: "ElectraForPreTraining", GENERATOR: "ElectraForMaskedLM",
                 RESTORER: "ElectraForMaskedLM"}
_RENAMED = {"generator_predictions/output_bias": "generator_lm_head.bias",
            "discriminator_predictions/dense_1/kernel":
                "discriminator_predictions.dense_prediction.weight",
            "discriminator_predictions/dense_1/bias":
                "discriminator_predictions.dense_prediction.bias"}
_ENCODERS = frozenset({"ElectraModel", "BertModel", "BertForMaskedLM", "BertForPreTraining",
                       "BertForNextSentencePrediction"})
"""Classes of which the encoder is read; BERT's heads of pre-training are not used."""
_BERT_HEADS = {f"BertFor{name}": f"ElectraFor{name}"
               for name in ("TokenClassification", "QuestionAnswering")}
"""Classes whose heads are ELECTRA's; BERT's for classification reads a pooler."""


def read(path: Path, *, encoder_only: bool = False, with_task: bool = True,
         text_columns: Sequence[str] = ()) -> Checkpoint:
    """Returns the networks of a directory or of a model of the Hub.

    They are a fine-tuned model, of which the encoder alone is read unless `with_task`; a
    discriminator and, if there is one, its generator, in `generator/` or, on the Hub, a model of
    its own; or an encoder of ELECTRA or BERT. Refuses other architectures and two networks that
    share too little. A note names weights that are not used.
    """
    with_task = with_task and not encoder_only

    # The directory of the network, and of its generator, if it has one.
    directory, generator_directory = (
        _fetch(path, with_generator=not encoder_only) if hub.is_model_name(path)
        else (path, path / GENERATOR))
    if not encoder_only and (directory / RESTORER / CONFIG_FILE).exists():
        note(f"{directory / RESTORER} is not read: its encoder is the discriminator's, and its "
             "head has no place here.")
    if (directory / DISCRIMINATOR / CONFIG_FILE).exists():
        directory = directory / DISCRIMINATOR

    # Text: the vocabulary, and the pooling of sentence-transformers.
    pooling, lower_case = Checkpoint.pooling, False
    if (directory / sentence_transformers.MODULES_FILE).exists():
        directory, pooling, lower_case = sentence_transformers.read(directory)
    config, model, tensors = _read_network(directory)
    text, positions = read_text(directory), model.max_position_embeddings
    if (pooling is not Checkpoint.pooling and pooling.max_length is None
            and (limit := read_max_length(directory, positions)) < positions):
        pooling = dataclasses.replace(pooling, max_length=limit)
    if lower_case:
        text = dataclasses.replace(text, normalization=dataclasses.replace(
            text.normalization, lower_case=True))

    # The encoder, and the head of a discriminator or of a RoFormer's masked language model; others
    # are left in `others`.
    architecture = roformer.electra_class(config.architecture) or _infer_architecture(tensors)
    task, settings, objective = None, {}, Checkpoint.objective
    is_discriminator = architecture == ARCHITECTURES[DISCRIMINATOR]
    is_task = with_task and architecture in hugging_face_heads.ARCHITECTURES | _BERT_HEADS.keys()
    if (is_discriminator or is_task) and _infer_architecture(tensors) == "ElectraModel":
        model_class = re.sub("For.*", "Model", config.architecture)
        raise UserError(f"{weights_file(directory)} is of {config.architecture} without its head; "
                        f'"architectures": ["{model_class}"] in {CONFIG_FILE} reads the encoder.')
    is_rotary = model.positions == Positions.ROTARY
    encoder = model.discriminator
    shapes = discriminator(encoder).weights if is_discriminator else full_encoder(encoder)
    if is_rotary and architecture == ARCHITECTURES[GENERATOR] and not encoder_only:
        shapes, objective = language_model("generator", encoder, shapes).weights, "mlm"
        model = dataclasses.replace(model, tying=Tying.EVERYTHING, generator_width=1.0)
    model, weights, others = _convert(tensors, config, model, shapes, text, directory)

    # The generator, also beside an encoder alone, or the head of a task.
    has_generator = not encoder_only and (generator_directory / CONFIG_FILE).exists()
    if is_discriminator or objective == "mlm" or (
            has_generator and architecture == "ElectraModel"):
        if has_generator:
            model, weights = _read_generator(generator_directory, model, weights, text)
    elif is_task:
        if pooling is not Checkpoint.pooling:  # modules.json beside a head: a CrossEncoder.
            text_columns = text_columns or hugging_face_heads.PAIR
        task, settings, head = hugging_face_heads.from_hugging_face(
            _BERT_HEADS.get(architecture, architecture), config, others, str(directory),
            text_columns)
        weights |= head
        settings["task.max_seq_length"] = read_max_length(directory, positions)
    elif with_task and config.electra_tf is not None and pooling.normalize:
        task, settings = hugging_face_heads.embedding_task(config, pooling)
    elif architecture == ARCHITECTURES[GENERATOR]:
        raise UserError(f"{directory / CONFIG_FILE}: the architecture is {architecture}; "
                        f"{ARCHITECTURES[DISCRIMINATOR]} is expected. For both networks, name "
                        "the directory that holds discriminator/ and generator/.")
    elif with_task and architecture not in _ENCODERS:
        raise UserError(f"{directory / CONFIG_FILE}: the architecture is {architecture}, whose "
                        "head this program does not have. Its encoder can be fine-tuned: "
                        f"{command('finetune')} --init_checkpoint={directory}")

    # Whatever is left has no place in this program's model.
    parts.note_unused(others, str(weights_file(directory)))
    checkpoint = Checkpoint(source=str(path), config=model, text=text, weights=weights,
                            pooling=pooling, task=task, task_settings=settings,
                            objective=objective)
    if task is None:
        parts.require_networks(checkpoint)
    return checkpoint


def _infer_architecture(tensors: Weights) -> str:
    """Returns the class of a network whose config.json doesn't name it, by its weights."""
    has_pooler = f"{_prefix(tensors)}pooler.dense.weight" in tensors
    return next((architecture for weight, architecture in {
        "discriminator_predictions.dense.weight": ARCHITECTURES[DISCRIMINATOR],
        "generator_predictions.dense.weight": ARCHITECTURES[GENERATOR],
        "classifier.out_proj.weight": "ElectraForSequenceClassification",
        "qa_outputs.weight": "ElectraForQuestionAnswering",
        "classifier.weight": "BertForSequenceClassification" if has_pooler
        else "ElectraForTokenClassification"}.items() if weight in tensors), "ElectraModel")


def _read_generator(directory: Path, model: ModelConfig, weights: Weights,
                    text: TextSettings) -> tuple[ModelConfig, Weights]:
    """Returns the shape of a discriminator and of its generator, and the weights of both."""
    config, shape, tensors = _read_network(directory)
    if roformer.electra_class(config.architecture) not in ("", ARCHITECTURES[GENERATOR]):
        raise UserError(f"{directory / CONFIG_FILE}: the architecture is {config.architecture}; "
                        f"{ARCHITECTURES[GENERATOR]} is expected.")
    # Both networks must read the same ids, and score words by the word embeddings.
    encoder = shape.discriminator
    if read_text(directory) != text:
        raise UserError(f"{directory} reads text in another way than its {DISCRIMINATOR} "
                        "(vocabulary, lower case or accents); use networks of one training.")
    # The generator's weights, without embeddings that equal the discriminator's.
    _, generator, others = _convert(tensors, config, shape, language_model(
        "generator", encoder, full_encoder(encoder)).weights, text, directory)
    parts.note_unused(others, str(weights_file(directory)))
    weights = parts.join_networks(weights, generator, str(directory))
    return parts.infer_generator(
        model, weights, str(directory), encoder.num_heads), weights


def _fetch(path: Path, *, with_generator: bool) -> tuple[Path, Path]:
    """Downloads a model of the Hub; returns its directory and that of a generator, if any."""
    # A generator is in generator/, or a model whose name ends in -generator.
    model, revision = hub.parse_model_name(path)
    directory = _download(model, revision, ("", f"{GENERATOR}/") if with_generator else ("",))
    if with_generator and model.endswith("-discriminator"):
        with contextlib.suppress(hub.MissingRepository):
            return directory, _download(
                f"{model.removesuffix('discriminator')}generator", revision, ("",))
    return directory, directory / GENERATOR


def _download(model: str, revision: str | None, folders: Sequence[str]) -> Path:
    """Downloads files of some folders; config.json is checked before the weights are downloaded."""
    def download(*names: str) -> Path:
        return hub.download_model(model, revision, [
            folder + name for folder in folders for name in names])

    directory = download(
        CONFIG_FILE, ADAPTER_FILE, *TOKENIZER_FILES, *sentence_transformers.FILES)
    if (directory / CONFIG_FILE).exists():
        read_config(directory)
    elif not (directory / ADAPTER_FILE).exists():
        raise UserError(f"{model} holds no config.json; it is not a model of transformers.")
    # The first file of weights that the model has, or an index and the files that it names.
    for name, pattern in WEIGHTS_FILES.items():
        if (download(name) / name).exists():
            if pattern:
                download(pattern)
            break
    return directory


def write(checkpoint: Checkpoint, directory: Path) -> None:
    """Writes a fine-tuned model, or `discriminator/` and, if they exist, `generator/`, `restorer/`.

    `discriminator/` of a model without a discriminator holds its encoder; `restorer/` holds that
    encoder with the head that predicts tokens. Sentence embeddings also get the files of
    sentence-transformers. Raises `UserError` for missing or unknown weights or heads.
    """
    if checkpoint.task is not None:
        # A fine-tuned model: the encoder and the head of Hugging Face's class.
        task = hugging_face_heads.task_config(checkpoint)
        write_encoder(checkpoint, directory, *hugging_face_heads.to_hugging_face(checkpoint),
                      task.max_seq_length)
        if task.long_texts is not LongTexts.TRUNCATE:
            note(f"transformers cuts texts at {task.max_seq_length} tokens; this model was trained "
                 f"with task.long_texts={task.long_texts}, which converting back restores.")
        return
    parts.require_networks(checkpoint)
    # The networks of pre-training, each with its own copy of shared embeddings.
    for name, has_head in ((DISCRIMINATOR, checkpoint.has_discriminator),
                           (GENERATOR, checkpoint.has_generator),
                           (RESTORER, checkpoint.has_restorer)):
        if name != DISCRIMINATOR and not has_head:
            continue
        encoder, weights = parts.extract(checkpoint, name)
        if name == GENERATOR and encoder.is_modern and (
                encoder.embedding_size != encoder.hidden_size):
            note("ModernBERT's embeddings have the hidden size: the generator is not written. "
                 "model.generator_width=1 makes one that can be.")
            continue
        _write_network(checkpoint.text, directory / name, encoder, weights, {}, {
            "architectures": [ARCHITECTURES[name] if has_head else "ElectraModel"]})


def write_encoder(checkpoint: Checkpoint, directory: Path, head: Weights | None = None,
                  entries: Mapping[str, Any] | None = None, max_length: int | None = None) -> None:
    """Writes the encoder and its pooling into a directory, without `discriminator/`.

    `head` has the weights of a task's head, `entries` are those of config.json about it.
    """
    encoder = checkpoint.config.discriminator
    weights = {name: value for name, value in checkpoint.weights.items()
               if not name.startswith(hugging_face_heads.HEAD)}
    require_exactly(weights, full_encoder(encoder), checkpoint.source)
    _write_network(checkpoint.text, directory, encoder, weights, head or {},
                   entries or {"architectures": ["ElectraModel"]}, max_length)
    if checkpoint.pooling.normalize:
        sentence_transformers.write(checkpoint.pooling, encoder.hidden_size, directory)


def _write_network(text: TextSettings, directory: Path, encoder: EncoderConfig, weights: Weights,
                   head: Weights, entries: Mapping[str, Any], max_length: int | None = None
                   ) -> None:
    """Writes one network; `entries` are those of the head in config.json, `head` its weights."""
    # PyTorch's kernels are [out, in].
    make_directory(directory)
    tensors = {_pytorch_name(name): value.T if name.endswith("/kernel") else value
               for name, value in weights.items()} | head
    entries = {**entries, **encoder_entries(encoder, text)}
    if encoder.is_modern or encoder.positions == Positions.ROTARY:
        # The classes have ELECTRA's layers, but no head that detects replaced tokens.
        family = "ModernBert" if encoder.is_modern else "RoFormer"
        entries["architectures"] = [
            name.replace("ForPreTraining", "Model").replace("Electra", family)
            for name in entries["architectures"]]
        kept = {name: value for name, value in tensors.items()
                if not name.startswith("discriminator_predictions.")}
        if len(kept) < len(tensors):
            note(f"transformers has no {family} that detects replaced tokens: the encoder is "
                 "written, without that head.")
        if encoder.is_modern:
            tensors = modernbert.from_electra(kept, encoder)
            entries = modernbert.entries(entries, encoder, text)
        else:
            tensors = roformer.from_electra(kept, encoder)
            entries |= {"model_type": "roformer", "rotary_value": False}
    write_atomically(directory / WEIGHTS_FILE, save(
        {name: np.ascontiguousarray(value) for name, value in tensors.items()},
        metadata={"format": "pt"}))
    write_json(directory / CONFIG_FILE, entries)
    write_text(text, directory, max_length or encoder.max_position_embeddings,
               segments=not encoder.is_modern)


def encoder_entries(encoder: EncoderConfig, text: TextSettings) -> dict[str, Any]:
    """Returns the entries of config.json that describe an encoder."""
    return {"model_type": "electra", "hidden_act": "gelu",
            "layer_norm_eps": encoder.layer_norm_epsilon,
            **{entry: getattr(encoder, name) for name, entry in BERT_NAMES.items()},
            "pad_token_id": text.vocabulary.pad_id, "torch_dtype": "float32"}


def _read_network(directory: Path) -> tuple[Config, ModelConfig, dict[str, np.ndarray]]:
    """Returns config.json, the settings of the model, and the weights by PyTorch's names."""
    if not (directory / CONFIG_FILE).exists():
        weights_file(directory)  # Names an adapter alone.
    read_config(directory)  # Its mistakes are reported before the weights are read.
    tensors = read_weights(directory)
    config, model = read_config(directory, tensors)
    if model.is_modern and not config.architecture and "head.dense.weight" in tensors:
        raise UserError(f"{directory / CONFIG_FILE} has no architectures, which say what the head "
                        "is for; write the name of its class there.")
    if not model.is_modern and model.positions == Positions.ROTARY:
        tensors = roformer.to_electra(tensors, model.num_heads, str(weights_file(directory)))
    return config, model, tensors


def read_config(directory: Path, tensors: Collection[str] = ()) -> tuple[Config, ModelConfig]:
    """Returns config.json and the settings of the model; `UserError` if it isn't ELECTRA's.

    Without `model_type`, the names of `tensors` decide between ELECTRA and BERT.
    """
    path, max_bytes = directory / CONFIG_FILE, 4 * MIB  # 1 KB, and names of labels.
    more: dict[str, Any] = {}  # Settings of ModernBERT's layers.
    entries = strict_json.read(path, dict[str, Any], max_bytes=max_bytes)
    if "registered_name" in entries:
        raise UserError(f"{path} is of KerasHub, whose presets are not read; name the model in "
                        "Hugging Face's format, such as google/electra-small-discriminator.")
    if entries.get("model_type") == hugging_face_heads.MODERNBERT:
        config, more = modernbert.read_config(path)
    else:
        config = strict_json.read(path, Config, max_bytes=max_bytes)
    # BERT's embeddings have the hidden size; only ELECTRA projects smaller ones.
    settings = {name: getattr(config, entry) for name, entry in BERT_NAMES.items()
                if getattr(config, entry) is not None}
    is_electra = any(name.startswith("electra.") or "embeddings_project." in name
                     for name in tensors)
    model_type = config.model_type or ("electra" if is_electra else "bert")
    if tensors and config.model_type is None:
        note_once(f"{path} has no model_type; the weights are those of {model_type!r}.")
    if model_type == "bert" or (model_type == "roformer" and config.embedding_size is None):
        settings["embedding_size"] = config.hidden_size
    if model_type == "roformer":
        settings |= {"positions": Positions.ROTARY, "rotary_base": roformer.BASE}
    try:
        return config, ModelConfig(**settings, **more)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


def _convert(tensors: dict[str, np.ndarray], config: Config, model: ModelConfig, shapes: Shapes,
             text: TextSettings, directory: Path
             ) -> tuple[ModelConfig, Weights, dict[str, np.ndarray]]:
    """Returns a shape, its weights by our names, and the tensors of heads that it doesn't have.

    The weights are float32, kernels are [in, out], and embeddings have no rows beyond the
    vocabulary. Raises `UserError` for other shapes, and for an output matrix of a masked language
    model that isn't the word table.
    """
    # Our name -> the file's.
    source, prefix = str(weights_file(directory)), _prefix(tensors)
    stored: Mapping[str, str] = {_pytorch_name(name): name for name in shapes}
    if model.is_modern:
        stored = modernbert.stored_names(stored, model.num_layers)
    names = {name: re.sub(r"^(electra|model)\.", prefix, stored_name)
             for stored_name, name in stored.items()}
    if GENERATOR_BIAS in names:
        words = names[f"{ENCODER}embeddings/word_embeddings"]
        table = re.sub("bias$", "weight", names[GENERATOR_BIAS])
        default = tensors.get(words) if config.tie_word_embeddings else None
        if not np.array_equal(tensors.pop(table, default), tensors.get(words)):
            raise UserError(f"{source}: {table} is not {words}, and generators with an output "
                            "matrix of their own (tie_word_embeddings: false) are not supported. "
                            "For the discriminator alone, name its own directory.")
    # Tensors of other modules than those of the shapes are left to the caller.
    modules = tuple(re.match(f"({prefix})?[^.]+", name)[0] for name in names.values())
    own = {name: value for name, value in tensors.items() if name.startswith(modules)}
    others = {name: value for name, value in tensors.items() if name not in own}
    require_exactly(own, {names[name]: shape[::-1] if name.endswith("/kernel") else shape
                          for name, shape in shapes.items()}, source)
    # float32 kernels [in, out], and embeddings of as many rows as the vocabulary has tokens.
    weights = {name: tensors[names[name]].astype(np.float32) for name in shapes}
    return *parts.drop_padding_rows(model, {
        name: value.T if name.endswith("/kernel") else value for name, value in weights.items()},
        text.vocabulary, source), others


def _prefix(tensors: Weights) -> str:
    """Returns the beginning of an encoder's names: "electra.", "bert.", "model." or ""."""
    return next((prefix for prefix in ("electra.", "bert.", "model.")
                 if any(name.startswith(f"{prefix}embeddings.") for name in tensors)), "")


def _pytorch_name(name: str) -> str:
    """Returns a weight's name in Hugging Face's networks for PyTorch.

    >>> _pytorch_name("electra/encoder/layer_3/output/dense/kernel")
    'electra.encoder.layer.3.output.dense.weight'
    """
    if name in _RENAMED:
        return _RENAMED[name]
    path = re.sub(r"/layer_(\d+)/", r"/layer/\1/", name)
    path = re.sub("/(kernel|gamma)$", "/weight", re.sub("/beta$", "/bias", path))
    return (f"{path}/weight" if path.endswith("_embeddings") else path).replace("/", ".")
