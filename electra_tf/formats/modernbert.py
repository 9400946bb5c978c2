"""Hugging Face's ModernBERT (Warner et al., 2024), the class of `model.architecture=modernbert`.

Its config.json and weights have names of their own; the layers are ours, transposed. Heads of tasks
have a dense layer and a norm below the output, which `task.hidden_layer=true` creates.
"""

import dataclasses
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from annotated_types import Interval

from electra_tf.checkpoints.weights import Weights
from electra_tf.config.model import Architecture, EncoderConfig, Positions
from electra_tf.core import strict_json
from electra_tf.core.errors import UserError
from electra_tf.core.storage import MIB, Path
from electra_tf.formats import hugging_face_heads as heads
from electra_tf.text.normalization import TextSettings

_CLASSES = ("Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification",
            "ForQuestionAnswering")
_GLOBAL, _LOCAL = "full_attention", "sliding_attention"
_LAYERS = {  # The names that ELECTRA's layers would have -> ModernBERT's.
    "attention.LayerNorm": "attn_norm", "attention.self.qkv": "attn.Wqkv",
    "attention.output.dense": "attn.Wo", "intermediate.LayerNorm": "mlp_norm",
    "intermediate.dense": "mlp.Wi", "output.dense": "mlp.Wo"}


class _Rope(strict_json.OpenObject):
    rope_type: Literal["default"] = "default"
    rope_theta: float


class _Config(heads.Config):
    """The entries of config.json that are read; defaults are transformers'."""

    model_type: Literal[heads.MODERNBERT]
    type_vocab_size: int = 2
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    mlp_dropout: float = 0.0
    attention_dropout: float = 0.0
    classifier_dropout: float = 0.0
    layer_norm_eps: Any = None
    norm_eps: Annotated[float, Interval(ge=1e-5, le=1e-5)] = 1e-5
    hidden_activation: Literal["gelu", "gelu_python"] = "gelu"
    classifier_activation: Literal["gelu", "gelu_python"] = "gelu"
    norm_bias: Literal[False] = False
    attention_bias: Literal[False] = False
    mlp_bias: Literal[False] = False
    classifier_bias: Literal[False] = False
    decoder_bias: Literal[True] = True
    local_attention: int = 128
    global_attn_every_n_layers: Annotated[int, Interval(gt=0)] = 3
    layer_types: list[Literal[_GLOBAL, _LOCAL]] | None = None
    global_rope_theta: float = 160_000.0
    local_rope_theta: float | None = 10_000.0
    rope_scaling: None = None
    rope_parameters: dict[Literal[_GLOBAL, _LOCAL], _Rope] | None = None


def read_config(path: Path) -> tuple[heads.Config, dict[str, Any]]:
    """Returns config.json by ELECTRA's names, and the layers' settings; `UserError` for others."""
    # Which layers are global: 0, n, 2 n and so on.
    file = strict_json.read(path, _Config, max_bytes=4 * MIB)
    every = file.global_attn_every_n_layers
    if file.layer_types not in (None, _layer_types(file.num_hidden_layers, every)):
        every = (file.layer_types[1:] + [_GLOBAL]).index(_GLOBAL) + 1
        if file.layer_types != _layer_types(file.num_hidden_layers, every):
            raise UserError(f"{path}: layer_types must be {_GLOBAL} in every n-th layer from the "
                            f"first on, and {_LOCAL} in others, for one n.")

    # The bases of the angles, by the newer entry or the older ones.
    bases = {_GLOBAL: file.global_rope_theta,
             _LOCAL: file.local_rope_theta or file.global_rope_theta}
    bases |= {kind: rope.rope_theta for kind, rope in (file.rope_parameters or {}).items()}
    architectures = tuple(
        re.sub("^ModernBert", "Electra", name) if name.removeprefix("ModernBert") in _CLASSES
        else name for name in file.architectures or ())
    return dataclasses.replace(
        file, architectures=architectures, embedding_size=file.hidden_size,
        hidden_dropout_prob=file.mlp_dropout,
        attention_probs_dropout_prob=file.attention_dropout), {
            "architecture": Architecture.MODERNBERT, "positions": Positions.ROTARY,
            "attention_window": file.local_attention // 2 * 2,  # Both sides have equally many.
            "global_every": every, "rotary_base": bases[_GLOBAL],
            "local_rotary_base": bases[_LOCAL]}


def entries(entries: dict[str, Any], encoder: EncoderConfig, text: TextSettings) -> dict[str, Any]:
    """Returns config.json of a network, from the entries that ELECTRA's would have."""
    kept = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
            "num_attention_heads", "max_position_embeddings", "initializer_range", "pad_token_id",
            "torch_dtype", "finetuning_task", "id2label", "label2id", "problem_type",
            "classifier_dropout", "classifier_pooling", "electra_tf")
    tokens, bases = text.vocabulary, (encoder.rotary_base, encoder.local_rotary_base)
    return {name: value for name, value in entries.items() if name in kept} | {
        "model_type": heads.MODERNBERT, "architectures": entries["architectures"],
        "hidden_activation": "gelu", "norm_eps": encoder.layer_norm_epsilon,
        **dict.fromkeys(("norm_bias", "attention_bias", "mlp_bias", "classifier_bias"), False),
        **dict.fromkeys(("embedding_dropout", "mlp_dropout"), encoder.hidden_dropout),
        "attention_dropout": encoder.attention_dropout,
        "cls_token_id": tokens.cls_id, "bos_token_id": tokens.cls_id,
        "sep_token_id": tokens.sep_id, "eos_token_id": tokens.sep_id,
        "local_attention": encoder.attention_window,
        "layer_types": _layer_types(encoder.num_layers, encoder.global_every),
        # transformers 4 reads these three, 5 the entry below.
        "global_attn_every_n_layers": encoder.global_every,
        "global_rope_theta": bases[0], "local_rope_theta": bases[1],
        "rope_parameters": {kind: {"rope_type": "default", "rope_theta": base}
                            for kind, base in zip((_GLOBAL, _LOCAL), bases, strict=True)}}


def from_electra(tensors: Weights, encoder: EncoderConfig) -> Weights:
    """Renames a network's weights; `UserError` for embeddings of another size than hidden ones."""
    if encoder.embedding_size != encoder.hidden_size:
        raise UserError("ModernBERT's embeddings have the hidden size; this network has "
                        f"embedding_size={encoder.embedding_size} and "
                        f"hidden_size={encoder.hidden_size}. Use --to_format=run.")
    return stored_names(tensors, encoder.num_layers)


def stored_names(tensors: Mapping[str, Any], num_layers: int) -> dict[str, Any]:
    """Renames what has the names of ELECTRA's weights as files of ModernBERT name them."""
    stems = {
        "electra.embeddings.word_embeddings": "model.embeddings.tok_embeddings",
        "electra.embeddings.LayerNorm": "model.embeddings.norm",
        f"electra.encoder.layer.{num_layers - 1}.final.LayerNorm": "model.final_norm",
        **{f"electra.encoder.layer.{index}.{electra}": f"model.layers.{index}.{modern}"
           for index in range(num_layers) for electra, modern in _LAYERS.items()},
        "generator_predictions.dense": "head.dense", "generator_predictions.LayerNorm": "head.norm",
        "generator_lm_head": "decoder"}
    return {f"{stems.get(stem, stem)}.{leaf}": value for (stem, _, leaf), value in (
        (name.rpartition("."), value) for name, value in tensors.items())}


def _layer_types(num_layers: int, every: int) -> list[str]:
    return [_LOCAL if index % every else _GLOBAL for index in range(num_layers)]
