"""Reads Hugging Face's directories: config.json, weights, vocab.txt, tokenizer_config.json.

transformers saves the two networks separately, each with a copy of the embeddings: a pair is a
directory with `discriminator/` and `generator/`. A fine-tuned model is one directory. The weights,
with PyTorch's names and [out, in] kernels, are in the first of `WEIGHTS_FILES` that exists.
"""

import dataclasses
import io
import re
import shlex
from pickle import UnpicklingError
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Interval
from safetensors import SafetensorError
from safetensors.numpy import load

from electra_tf.checkpoints.hugging_face_tokenizer import read_text as read_tokenizer
from electra_tf.checkpoints.pretrained import Pretrained
from electra_tf.checkpoints.weights import Weights, require_exactly, with_generator
from electra_tf.config.model import ModelConfig
from electra_tf.modeling.weight_table import Shapes, discriminator, vocabulary_head, whole_encoder
from electra_tf.platform import strict_json
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import MIB, Path, cannot_read, read_bytes
from electra_tf.text.tokenization import TextSettings

CONFIG_FILE = "config.json"
WEIGHTS_FILE, KERAS_FILE, PICKLED_FILE = WEIGHTS_FILES = (
    "model.safetensors", "tf_model.h5", "pytorch_model.bin")
DISCRIMINATOR, GENERATOR = "discriminator", "generator"
ARCHITECTURES = {DISCRIMINATOR: "ElectraForPreTraining", GENERATOR: "ElectraForMaskedLM"}
FINETUNED = {"ElectraForSequenceClassification": "text-classification",
             "ElectraForTokenClassification": "token-classification",
             "ElectraForQuestionAnswering": "question-answering"}
"""Fine-tuned models whose heads `export/hugging_face.py` converts: class -> the Hub's task."""
SIZES = {"vocab_size": "vocab_size", "embedding_size": "embedding_size",
         "hidden_size": "hidden_size", "num_layers": "num_hidden_layers",
         "num_heads": "num_attention_heads", "intermediate_size": "intermediate_size",
         "max_position_embeddings": "max_position_embeddings",
         "type_vocab_size": "type_vocab_size"}
"""Our setting -> theirs; integers."""
OTHERS = {"hidden_dropout": "hidden_dropout_prob",
          "attention_dropout": "attention_probs_dropout_prob",
          "initializer_range": "initializer_range"}
"""Our setting -> theirs; floats that only affect training."""
FIXED = {"model_type": "electra", "hidden_act": "gelu", "layer_norm_eps": 1e-12}
_RENAMED = {"generator_predictions/output_bias": "generator_lm_head.bias",
            "discriminator_predictions/dense_1/kernel":
                "discriminator_predictions.dense_prediction.weight",
            "discriminator_predictions/dense_1/bias":
                "discriminator_predictions.dense_prediction.bias"}
_IGNORED = frozenset({"electra.embeddings.position_ids", "generator_lm_head.weight"})
"""A buffer that old releases saved, and the tied table where it is saved twice."""
_MOST_WEIGHTS = 16 << 30  # Bytes, read into memory; ELECTRA-Large's has 1.3 GB.
_MOST_CONFIG = 4 * MIB  # A config has 1 KB, and the names of labels.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    """The entries of config.json that are read."""

    __pydantic_config__ = strict_json.OPEN

    model_type: Literal["electra"] = "electra"
    hidden_act: Literal["gelu"] = "gelu"
    layer_norm_eps: Annotated[float, Interval(ge=1e-12, le=1e-12)] = 1e-12
    position_embedding_type: Literal["absolute"] = "absolute"
    is_decoder: Literal[False] = False
    add_cross_attention: Literal[False] = False
    vocab_size: int
    embedding_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int
    type_vocab_size: int
    hidden_dropout_prob: float
    attention_probs_dropout_prob: float
    initializer_range: float = ModelConfig.initializer_range
    architectures: tuple[str, ...] | None = None
    id2label: dict[str, str] | None = None
    label2id: dict[str, int] | None = None
    problem_type: str | None = None
    finetuning_task: str | None = None

    @property
    def architecture(self) -> str:
        """Name of the network's class; empty if the file has none."""
        return ", ".join(self.architectures or ())

    def settings(self) -> dict[str, Any]:
        """Returns the encoder's settings by our names."""
        return {ours: getattr(self, theirs) for ours, theirs in (SIZES | OTHERS).items()}


def is_directory_of(path: Path) -> bool:
    """Returns True if a directory holds one or two networks in this format."""
    return (path / CONFIG_FILE).exists() or (path / DISCRIMINATOR / CONFIG_FILE).exists()


def read(path: Path, beside: Path | None = None, *, generator: bool = True) -> Pretrained:
    """Returns the networks of a directory: a pair, or a discriminator, with generator/ or alone.

    `beside` is the directory of a generator that is elsewhere; `generator=False` leaves it unread.
    Refuses damaged files, another architecture, and two networks that share too little.
    """
    pair = (path / DISCRIMINATOR / CONFIG_FILE).exists()
    directory = path / DISCRIMINATOR if pair else path
    config, model = read_config(directory)
    if config.architecture in FINETUNED:
        return _read_finetuned(directory, config, model)
    _require_architecture(config, directory, ARCHITECTURES[DISCRIMINATOR])
    text = read_text(directory, config)
    weights = _by_our_names(
        read_weights(directory), discriminator(model.discriminator).weights, directory)
    place = beside or path / GENERATOR
    if generator and (place / CONFIG_FILE).exists():
        own, own_model = read_config(place)
        _require_architecture(own, place, ARCHITECTURES[GENERATOR])
        alone = own_model.discriminator
        found = _by_our_names(read_weights(place), whole_encoder(alone) | vocabulary_head(
            "generator_predictions", alone), place)
        model, theirs = with_generator(
            config.settings(), {name: getattr(alone, name) for name in SIZES}, found,
            weights, str(place))
        weights |= theirs
        if read_text(place, own) != text:
            raise UserError(f"{path}: {GENERATOR}/ reads text in another way than {DISCRIMINATOR}/ "
                            "does (vocabulary, lower case or accents); they are no pair.")
    return Pretrained(source=str(path), model=model, text=text, weights=weights)


def _require_architecture(config: Config, directory: Path, wanted: str) -> None:
    if config.architecture not in ("", wanted):
        raise UserError(f"{directory / CONFIG_FILE}: the architecture is {config.architecture}; "
                        f"{wanted} is expected. A generator is read beside its discriminator: name "
                        "the directory that holds discriminator/ and generator/.")


def _read_finetuned(directory: Path, config: Config, model: ModelConfig) -> Pretrained:
    found = read_weights(directory)
    head = {name: value for name, value in found.items()
            if name not in _IGNORED and not name.startswith("electra.")}
    weights = _by_our_names(
        {name: value for name, value in found.items() if name not in head},
        whole_encoder(model.discriminator), directory)
    return Pretrained(source=str(directory), model=model, weights=weights,
                      text=read_text(directory, config), their_head=(config, head))


def theirs_of(name: str) -> str:
    """Returns Hugging Face's name of a weight.

    >>> theirs_of("generator/encoder/layer_3/output/dense/kernel")
    'electra.encoder.layer.3.output.dense.weight'
    """
    if name in _RENAMED:
        return _RENAMED[name]
    path = re.sub(r"/layer_(\d+)/", r"/layer/\1/", re.sub("^generator/", "electra/", name))
    path = re.sub("/(kernel|gamma)$", "/weight", re.sub("/beta$", "/bias", path))
    return (f"{path}/weight" if path.endswith("_embeddings") else path).replace("/", ".")


def turned(name: str, value: np.ndarray) -> np.ndarray:
    """Returns the weight of our name in the other form: PyTorch's kernels are [out, in]."""
    return value.T if name.endswith("/kernel") else value


def _by_our_names(found: Weights, shapes: Shapes, directory: Path) -> dict[str, np.ndarray]:
    """Returns weights by our names, in float32 and our form, if they have exactly these shapes."""
    require_exactly(
        {name: value for name, value in found.items() if name not in _IGNORED},
        {theirs_of(name): shape[::-1] if name.endswith("/kernel") else shape
         for name, shape in shapes.items()}, str(_weights_file(directory)))
    return {name: turned(name, found[theirs_of(name)]).astype(np.float32) for name in shapes}


def _weights_file(directory: Path) -> Path:
    for name in WEIGHTS_FILES:
        if (directory / name).exists():
            return directory / name
    raise UserError(f"{directory} holds none of {', '.join(WEIGHTS_FILES)}; write weights with "
                    "model.save_pretrained(..., max_shard_size='100GB').")


def read_weights(directory: Path) -> dict[str, np.ndarray]:
    """Returns float32, float64 or float16 arrays by PyTorch's names; refuses damaged files."""
    path = _weights_file(directory)
    try:
        weights = {WEIGHTS_FILE: _read_safetensors, KERAS_FILE: _read_keras,
                   PICKLED_FILE: _read_pickled}[path.name](path)
    except OSError as error:
        raise cannot_read(path, error) from error
    for name, value in weights.items():
        if value.dtype not in (np.float32, np.float64, np.float16):
            raise UserError(f"{path}: {shown(name)} is of type {value.dtype}; weights are float32.")
    return weights


def _read_safetensors(path: Path) -> dict[str, np.ndarray]:
    try:
        return load(read_bytes(path, _MOST_WEIGHTS))
    except SafetensorError as error:
        raise UserError(f"{path} is damaged: {error}.") from error
    except KeyError as error:  # NumPy has no bfloat16 and no 8-bit floats.
        raise UserError(f"{path}: weights of type {error} can't be read; save them as float32: "
                        "model.float().save_pretrained(...).") from error


def _read_keras(path: Path) -> dict[str, np.ndarray]:
    """Returns the weights of Keras' HDF5 format; layers that share a weight repeat it."""
    import h5py  # Only these files need it.

    content = io.BytesIO(read_bytes(path, _MOST_WEIGHTS))
    try:
        with h5py.File(content, "r") as file:
            groups = [file[name] for name in file.attrs["layer_names"]]
            weights = [(name, group[name]) for group in groups
                       for name in group.attrs["weight_names"]]
            return dict(_as_pytorch(name, value, path) for name, value in weights)
    except (OSError, KeyError, TypeError, AttributeError, RuntimeError) as error:
        raise UserError(f"{path} is damaged, or no weights of Keras: {error}.") from error


def _as_pytorch(name: str | bytes, value, path: Path) -> tuple[str, np.ndarray]:
    """Returns a weight's name in PyTorch and its value, whose kernel is transposed."""
    name = name.decode() if isinstance(name, bytes) else name
    # A file of a few bytes can declare any size, and external data is another file's.
    if value.external is not None or value.is_virtual or value.id.get_storage_size() < value.nbytes:
        raise UserError(f"{path}: {shown(name)} is not stored whole in the file.")
    stem, leaf = re.sub("^tf_electra[^/]*/", "", name.removesuffix(":0")).rsplit("/", 1)
    array = value[()].T if leaf == "kernel" else value[()]
    leaf = {"kernel": "weight", "embeddings": "weight", "gamma": "weight",
            "beta": "bias"}.get(leaf, leaf)
    return f"{stem.replace('layer_._', 'layer/')}/{leaf}".replace("/", "."), array


def _read_pickled(path: Path) -> dict[str, np.ndarray]:
    """Returns the weights of torch.save, through PyTorch's reader that runs no code."""
    try:
        import torch
    except ModuleNotFoundError as error:
        program = ("import torch, safetensors.torch as s; s.save_file({n: t.clone().contiguous() "
                   f"for n, t in torch.load({str(path)!r}, map_location='cpu', weights_only=True)"
                   f".items()}}, {str(path.parent / WEIGHTS_FILE)!r})")
        raise UserError(
            f"{path} is pickled and needs PyTorch: pip install torch. Or convert the file where "
            f"PyTorch is installed: python -c {shlex.quote(program)}") from error
    content = io.BytesIO(read_bytes(path, _MOST_WEIGHTS))
    try:
        found = torch.load(content, map_location="cpu", weights_only=True)
        return {name: value.detach().float().numpy() for name, value in found.items()}
    except (UnpicklingError, RuntimeError, EOFError, KeyError, ValueError,
            AttributeError) as error:
        raise UserError(f"{path} is damaged, or not a table of weights: {error}.") from error


def read_config(directory: Path) -> tuple[Config, ModelConfig]:
    """Returns config.json and the settings of the model; `UserError` if it isn't ELECTRA's."""
    path = directory / CONFIG_FILE
    config = strict_json.read(path, Config, most=_MOST_CONFIG)
    try:
        return config, ModelConfig(**config.settings())
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


def read_text(directory: Path, config: Config) -> TextSettings:
    """Returns the vocabulary and normalization of a network; `UserError` if sizes differ."""
    text = read_tokenizer(directory)
    if text.vocabulary.size != config.vocab_size:
        raise UserError(f"{text.vocabulary.source} has {text.vocabulary.size} entries, but "
                        f"vocab_size of {directory / CONFIG_FILE} is {config.vocab_size}; the "
                        "vocabulary is another network's.")
    return text
