"""FLOPs as the ELECTRA paper counts them (appendix "Compute"), to compare with its tables.

Every operation is one, a matmul is 2*m*n*k, look-ups are matmuls with one-hot vectors, and the
backward pass costs one forward pass.
"""

from collections.abc import Iterable

from electra_tf.modeling.specs import NetworkSpec

# Operations per element by the paper's count.
_DROPOUT = 4  # draw, compare, multiply by the mask, multiply by the correction
_LAYER_NORM = 5  # mean, square, sum, bias, scale
_GELU = 8
_SOFTMAX = 5  # maximum, subtract, exponential, sum, divide
_SELECTED = 0.15625  # Predicted positions per token: 20 of 128 for every masking rate.


def training_per_token(networks: Iterable[NetworkSpec], length: int) -> float:
    """Returns the training FLOPs per token of an objective's networks by the paper's count.

    Times tokens per batch and steps, this is the "Train FLOPs" column of the paper's tables.
    """
    return sum(network.share * (2 if network.trained else 1) * forward(network, length)
               for network in networks) / length


def forward(network: NetworkSpec, length: int) -> float:
    """Returns the FLOPs of one forward pass over one sequence of L tokens by the paper's count.

    For a discriminator, whose head stands for a task's, and L = 128 it is table 1's "Infer FLOPs".
    """
    config = network.encoder
    size, hidden, inner = config.embedding_size, config.hidden_size, config.intermediate_size
    # The embeddings of a token: words, positions and segments, regularization, projection.
    embedding = (2 * size * config.vocab_size + 2 * size * (length + 2) + 2 * size
                 + (_LAYER_NORM + _DROPOUT) * size + (2 * size + 1) * hidden * (size != hidden))
    # A Transformer block for a token. The layer norm after attention counts 5 and not 5 H, as in
    # the published numbers.
    query_key_value = 3 * (2 * hidden + 1) * hidden
    # Scores and weighted sum are matmuls; the rest is scale, softmax and dropout of the scores.
    attended = config.attended_tokens(length) / config.num_layers
    attention = 4 * hidden * attended + (1 + _SOFTMAX + _DROPOUT) * attended * config.num_heads
    attention_output = (2 * hidden + 1) * hidden + (_DROPOUT + 1) * hidden + _LAYER_NORM
    gate = (2 * hidden + 1) * inner * config.is_modern
    intermediate = (2 * hidden + 1 + _GELU) * inner + gate
    output = (2 * inner + 1) * hidden + (_DROPOUT + 1 + _LAYER_NORM) * hidden
    block = query_key_value + attention + attention_output + intermediate + output
    # The encoder: every token passes the embeddings and all blocks.
    operations = network.towers * length * (config.num_layers * block + embedding)
    # The heads, at the fraction of positions that they predict.
    for head in network.heads:
        *hidden_layers, (inputs, outputs) = (
            shape for path, shape in head.weights.items() if path.endswith("/kernel"))
        # A dense layer with GELU and layer norm, then the vocabulary: logits and softmax.
        if head.scores_vocabulary:
            per_position = ((2 * inputs + 1 + _GELU + _LAYER_NORM) * outputs
                            + (2 * outputs + _SOFTMAX + 2) * config.vocab_size)
        else:  # The last layer has no bias.
            per_position = 2 * inputs * outputs + sum(
                (2 * rows + 1 + _GELU) * columns for rows, columns in hidden_layers)
        operations += length * head.positions(_SELECTED) * per_position
    return operations
