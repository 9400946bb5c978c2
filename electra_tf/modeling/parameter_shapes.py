"""Path and shape of every weight of the networks of pre-training.

Layers take their shapes from this table, converters their names, and the counts of parameters and
FLOPs both. The paths are the reference implementation's.
"""

import math

from electra_tf.config.model import EncoderConfig, ModelConfig, Positions, Tying

Shapes = dict[str, tuple[int, ...]]
ENCODER, GENERATOR = "electra", "generator"
"""First parts of the paths of the encoder that is fine-tuned, and of the generator."""
RESTORER = "restorer"
"""The same of a head above the former that predicts the original tokens of a corrupted text."""
FINAL_NORM = "final/LayerNorm"
"""Last part of the path of ModernBERT's norm above all layers, which belongs to the last layer."""


def size(shapes: Shapes) -> int:
    """Returns the number of values of all weights together."""
    return sum(map(math.prod, shapes.values()))


def dense(path: str, inputs: int, outputs: int, *, modern: bool = False) -> Shapes:
    """Returns a dense layer's kernel and bias; `modern` ones have no bias."""
    bias = {} if modern else {f"{path}/bias": (outputs,)}
    return {f"{path}/kernel": (inputs, outputs), **bias}


def norm(path: str, width: int, *, modern: bool = False) -> Shapes:
    """Returns a layer norm's gamma and beta; `modern` ones have no beta."""
    beta = {} if modern else {f"{path}/beta": (width,)}
    return {f"{path}/gamma": (width,), **beta}


def embeddings(path: str, config: EncoderConfig) -> Shapes:
    """Returns the tables below an encoder, and their layer norm."""
    width = config.embedding_size
    rows = {"word": config.vocab_size}
    if not config.is_modern:
        rows["token_type"] = config.type_vocab_size
    if config.positions == Positions.LEARNED:
        rows["position"] = config.max_position_embeddings
    return {**{f"{path}/{table}_embeddings": (count, width) for table, count in rows.items()},
            **norm(f"{path}/LayerNorm", width, modern=config.is_modern)}


def layer(path: str, config: EncoderConfig) -> Shapes:
    """Returns the weights of the Transformer layer at `path`."""
    hidden, wide = config.hidden_size, config.intermediate_size
    return {**dense(f"{path}/attention/self/query", hidden, hidden),
            **dense(f"{path}/attention/self/key", hidden, hidden),
            **dense(f"{path}/attention/self/value", hidden, hidden),
            **dense(f"{path}/attention/output/dense", hidden, hidden),
            **norm(f"{path}/attention/output/LayerNorm", hidden),
            **dense(f"{path}/intermediate/dense", hidden, wide),
            **dense(f"{path}/output/dense", wide, hidden),
            **norm(f"{path}/output/LayerNorm", hidden)}


def modern_layer(path: str, config: EncoderConfig, index: int) -> Shapes:
    """Returns the weights of ModernBERT's layer at `path`; the last one's has the final norm."""
    hidden, wide = config.hidden_size, config.intermediate_size
    shapes = {f"{path}/attention/self/qkv/kernel": (hidden, 3 * hidden),
              f"{path}/attention/output/dense/kernel": (hidden, hidden),
              **norm(f"{path}/intermediate/LayerNorm", hidden, modern=True),
              f"{path}/intermediate/dense/kernel": (hidden, 2 * wide),
              f"{path}/output/dense/kernel": (wide, hidden)}
    if index > 0:
        shapes |= norm(f"{path}/attention/LayerNorm", hidden, modern=True)
    if index == config.num_layers - 1:
        shapes |= norm(f"{path}/{FINAL_NORM}", hidden, modern=True)
    return shapes


def encoder(path: str, config: EncoderConfig) -> Shapes:
    """Returns the projection of the embeddings, unless E = H, and all layers."""
    shapes = ({} if config.embedding_size == config.hidden_size else dense(
        f"{path}/embeddings_project", config.embedding_size, config.hidden_size,
        modern=config.is_modern))
    for index in range(config.num_layers):
        place = f"{path}/encoder/layer_{index}"
        shapes |= modern_layer(place, config, index) if config.is_modern else layer(place, config)
    return shapes


def vocabulary_head(path: str, config: EncoderConfig) -> Shapes:
    """Returns the head that scores the vocabulary by the word table: dense, layer norm, bias."""
    modern = config.is_modern
    return {**dense(f"{path}/dense", config.hidden_size, config.embedding_size, modern=modern),
            **norm(f"{path}/LayerNorm", config.embedding_size, modern=modern),
            f"{path}/output_bias": (config.vocab_size,)}


def binary_head(path: str, config: EncoderConfig) -> Shapes:
    """Returns the head that gives one logit per position."""
    return {**dense(f"{path}/dense", config.hidden_size, config.hidden_size),
            **dense(f"{path}/dense_1", config.hidden_size, 1)}


def full_encoder(config: EncoderConfig, path: str = ENCODER) -> Shapes:
    """Returns an encoder with embeddings of its own; by default the one that is fine-tuned."""
    return embeddings(f"{path}/embeddings", config) | encoder(path, config)


def generator_embeddings(model: ModelConfig) -> Shapes:
    """Returns the generator's embeddings (section 3.2); shared ones have the encoder's path."""
    if model.tying in (Tying.ALL_EMBEDDINGS, Tying.EVERYTHING):
        return embeddings(f"{ENCODER}/embeddings", model.generator)
    shapes = embeddings(f"{GENERATOR}/embeddings", model.generator)
    if model.tying is Tying.TOKEN_EMBEDDINGS:
        words = "/embeddings/word_embeddings"
        shapes[ENCODER + words] = shapes.pop(GENERATOR + words)
    return shapes
