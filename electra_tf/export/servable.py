"""Trained networks whose graphs tokenize texts and decode answers.

Every signature takes batches and texts of any size. Words and tags of a batch's shorter texts are
padded with empty strings.
"""

import abc
import copy
import dataclasses
from collections.abc import Callable, Mapping, Sequence

import tensorflow as tf
import tf_keras

from electra_tf.checkpoints.weights import assign_weights
from electra_tf.config.model import EncoderConfig
from electra_tf.core.errors import UserError
from electra_tf.formats.hugging_face_heads import task_config
from electra_tf.formats.parts import has_energies
from electra_tf.formats.pretrained import Checkpoint, Pooling
from electra_tf.modeling import inference
from electra_tf.modeling.electra import Discriminator
from electra_tf.modeling.encoder import Encoder, create_encoder
from electra_tf.modeling.fused import inference_mode
from electra_tf.modeling.inference import InferenceEncoder
from electra_tf.modeling.layers import LayerOptions
from electra_tf.modeling.pooling import normalized, pool
from electra_tf.tasks.kinds.base import ServedNetwork
from electra_tf.tasks.registry import KINDS
from electra_tf.text import words
from electra_tf.text.rows import RowEncoder, Tokens

Outputs = Mapping[str, tf.Tensor]
ConcreteFunction = tf.types.experimental.ConcreteFunction
Signatures = dict[str, ConcreteFunction]
"""Traced functions by the name that a request gives."""
DEFAULT, TOKEN_IDS = "serving_default", "token_ids"
TOKEN_INPUTS = ("input_ids", "token_type_ids", "attention_mask")
"""Inputs of the signature `token_ids`, int32 [B, L], with BERT's names."""


class Servable(abc.ABC):
    """A network with a head in float32 and signatures that take texts or token ids."""

    columns: tuple[str, ...]
    """Names of the texts that `answer` takes."""
    pooling = Pooling()  # Of an encoder without a head.

    def __init__(self, encoder: InferenceEncoder | Encoder, head: tf_keras.layers.Layer,
                 row_encoder: RowEncoder):
        self.encoder, self.head, self.row_encoder = encoder, head, row_encoder

    @abc.abstractmethod
    def answer(self, *columns: tf.Tensor) -> Outputs:
        """Maps string [B] for every column to answers."""

    @abc.abstractmethod
    def score(self, tokens: Tokens) -> Outputs:
        """Maps token ids to outputs that are not decoded."""

    def save(self, directory: str, signatures: Signatures) -> None:
        """Writes a SavedModel; raises `OSError` or `tf.errors.OpError` if that fails."""
        weights = tf.Module()  # Keras's layers themselves would be saved with their own graphs.
        weights.all = [*self.encoder.variables, *self.head.variables]
        tf.saved_model.save(weights, directory, signatures=signatures, options=(
            tf.saved_model.SaveOptions(experimental_custom_gradients=False)))

    def signatures(self) -> Signatures:
        """Returns the traced functions by name."""
        def answer(*columns: tf.Tensor) -> Outputs:
            return self.answer(*_require_equal_shapes(
                dict(zip(self.columns, columns, strict=True)), "as many texts each"))

        def score(*inputs: tf.Tensor) -> Outputs:
            return self.score(_checked_tokens(
                inputs, self.encoder.config, self.row_encoder.vocabulary.cls_id))

        return {DEFAULT: trace(answer, self.columns, tf.string, [None]),
                TOKEN_IDS: trace(score, TOKEN_INPUTS, tf.int32, [None, None])}

    def for_token_ids(self, shape: Sequence[int | None]) -> ConcreteFunction:
        """Returns `score`, traced without checks for inputs [B, L]; None where a size varies."""
        return trace(lambda ids, segment_ids, mask: self.score(Tokens(ids, segment_ids, mask > 0)),
                     TOKEN_INPUTS, tf.int32, shape)


def trace(function: Callable[..., Outputs], names: Sequence[str], dtype: tf.DType,
          shape: Sequence[int | None]) -> ConcreteFunction:
    """Returns a function traced for inputs of these names, with one type and shape."""
    with inference_mode():
        return tf.function(function, autograph=False).get_concrete_function(*(
            tf.TensorSpec(shape, dtype, name) for name in names))


class TextEncoder(Servable):
    """A pre-trained encoder, which embeds texts; it has no head."""

    columns = ("text",)
    embedded_texts: RowEncoder | None = None  # Cuts texts of `embed` if it is not `row_encoder`.

    def score(self, tokens: Tokens) -> Outputs:
        """Returns `tokens`, float32 [B, L, H], the vectors of every position."""
        return {"tokens": self._hidden(tokens)}

    def _hidden(self, tokens: Tokens) -> tf.Tensor:
        """Returns the encoder's outputs, float32 [B, L, H]."""
        return tf.cast(self.encoder(*tokens), tf.float32)

    def signatures(self) -> Signatures:
        """Adds `embed` and `embed_tokens`."""
        return super().signatures() | {
            function.__name__: trace(function, self.columns, tf.string, [None])
            for function in (self.embed, self.embed_tokens)}

    def embed(self, text: tf.Tensor) -> Outputs:
        """Returns `pooled`, as `pooling` says the mean or others, and the vector of [CLS], `cls`.

        Texts, string [B], are cut at the encoder's length; both are float32, of [B, H] or, for M
        kinds of pooling, [B, M H].
        """
        outputs = self.embed_tokens(text)
        return {name: outputs[name] for name in ("pooled", "cls")}

    answer = embed

    def embed_tokens(self, text: tf.Tensor) -> Outputs:
        """Returns what `embed` does, `tokens`, float32 [B, L, H], and `token_ids`, int32 [B, L].

        Rows are [CLS], the pieces and [SEP]. Vectors of padding are zero.
        """
        tokens = (self.embedded_texts or self.row_encoder).encode(text)
        hidden = self._hidden(tokens)
        hidden = tf.where(tokens.padding_mask[:, :, tf.newaxis], hidden, 0.0)
        pooled = tf.concat([pool(hidden, tokens.padding_mask, mode)
                            for mode in self.pooling.modes], axis=1)
        return {"pooled": normalized(pooled) if self.pooling.normalize else pooled,
                "cls": hidden[:, 0], "tokens": hidden, "token_ids": tokens.ids}


class Detector(TextEncoder):
    """The pre-trained discriminator, which detects replaced words of a text."""

    def answer(self, *columns: tf.Tensor) -> Outputs:
        """Maps texts, string [B], to `words`, string [B, W], and `replaced_probability`.

        The probability is float32 [B, W], the highest of a word's pieces. Texts have any length.
        """
        # Words of all texts, whose pieces are packed into rows of at most L tokens.
        split = words.split_as_tokenized(self.row_encoder, *columns)
        rows = words.pack_in_rows(self.row_encoder, split)
        pieces = tf.ragged.range(rows.sizes)
        word_indices = tf.cast(pieces.value_rowids(), tf.int32)
        # Row and position of every piece, [P, 2], where the probability is read.
        first = tf.gather(rows.first_piece, word_indices)
        positions = tf.stack([first[:, 0], first[:, 1] + pieces.flat_values], axis=1)
        probabilities = tf.gather_nd(inference.map_in_chunks(
            lambda *part: self.score(Tokens(*part))["replaced_probability"], rows.tokens,
            tf.TensorSpec([None, None], tf.float32)), positions)
        return {"words": split.texts.to_tensor(""), "replaced_probability": words.per_text(
            split, tf.math.segment_max(probabilities, word_indices), 0.0)}

    def score(self, tokens: Tokens) -> Outputs:
        """Returns `replaced_probability`, float32 [B, L], of every position."""
        return {"replaced_probability": tf.sigmoid(self.head(self._hidden(tokens)))}

    def signatures(self) -> Signatures:
        """Adds `detect`, another name of the default."""
        signatures = super().signatures()
        return {**signatures, "detect": signatures[DEFAULT]}


class ServedTask(Servable):
    """A fine-tuned network, whose kind of task reads texts and decodes answers."""

    def __init__(self, network: ServedNetwork):
        super().__init__(network.encoder, network.head, network.row_encoder)
        self.network, self._kind = network, KINDS[network.spec.kind]
        self.columns = self._kind.served_inputs(network.spec)

    def answer(self, *columns: tf.Tensor) -> Outputs:
        """Maps string [B] for every column to answers."""
        return self._kind.served_answer(self._served(), *columns)

    def score(self, tokens: Tokens) -> Outputs:
        """Maps token ids to the network's outputs."""
        return self._kind.served_scores(self._served(), tokens)

    def _served(self) -> ServedNetwork:
        return dataclasses.replace(self.network, encoder=self.encoder)


def build(checkpoint: Checkpoint) -> Servable:
    """Returns a fine-tuned model, discriminator or encoder in float32; `UserError` for energies."""
    # A fine-tuned model, with its task's head.
    if checkpoint.task is not None:
        spec, task = checkpoint.task, task_config(checkpoint)
        model = KINDS[spec.kind].objective(spec, task).build_model(
            checkpoint.config, seed=0, policy="float32")
        assign_weights(model.variables, checkpoint.weights, checkpoint.source)
        return ServedTask(ServedNetwork(
            encoder=model.encoder, head=model.head, spec=spec, config=task, row_encoder=RowEncoder(
                checkpoint.text, task.max_seq_length, checkpoint.config.type_vocab_size)))

    # A discriminator with its head, or an encoder alone.
    if has_energies(checkpoint):
        raise UserError(f"{checkpoint.source} was trained with "
                        f"objective.name={checkpoint.objective}: its outputs are energies, not "
                        "probabilities of replaced tokens. To rank texts by energies: python -m "
                        "electra_tf.apps.tools.score_text")
    config = checkpoint.config.discriminator
    positions = config.max_position_embeddings
    texts = RowEncoder(checkpoint.text, positions)
    cut_texts = copy.copy(texts)  # They share the tokenizer.
    cut_texts.max_length = min(positions, checkpoint.pooling.max_length or positions)
    encoder = create_encoder(config, LayerOptions(seed=0))
    network: tf_keras.layers.Layer = encoder
    model = TextEncoder(encoder, tf.Module(), cut_texts)
    if checkpoint.has_discriminator:
        network = Discriminator(encoder, LayerOptions(seed=0))
        model = Detector(encoder, network.head, texts)
    assign_weights(network.variables, checkpoint.weights, checkpoint.source)
    model.pooling, model.embedded_texts = checkpoint.pooling, cut_texts
    return model


def _checked_tokens(inputs: Sequence[tf.Tensor], config: EncoderConfig, cls_id: int) -> Tokens:
    """Returns the inputs of the signature `token_ids`; its graph checks their values.

    [CLS] at the end of a row is padding, also where the mask has a 1: TensorFlow Serving's
    `pad_variable_length_inputs` pads every input with its first element.
    """
    ids, segment_ids, mask = _require_equal_shapes(
        dict(zip(TOKEN_INPUTS, inputs, strict=True)), "one shape")
    # A position counts if another token than [CLS] stands there or follows, or if it is the first.
    is_followed = tf.cumsum(tf.cast(ids != cls_id, tf.int32), axis=1, reverse=True) > 0
    padding_mask = (mask > 0) & (is_followed | (tf.range(tf.shape(ids)[1]) == 0))
    positions = config.max_position_embeddings

    def in_range(values: tf.Tensor, size: int) -> tf.Tensor:
        return tf.reduce_all((values >= 0) & (values < size) | ~padding_mask)

    # Values that look-ups would refuse with a message of their own, or read out of range.
    conditions = {
        "attention_mask must have a 1 in every row": tf.reduce_all(tf.reduce_any(padding_mask,
                                                                                 axis=1)),
        f"attention_mask: the model reads rows of at most {positions} tokens; received a 1 beyond":
            tf.logical_not(tf.reduce_any(padding_mask[:, positions:])),
        f"input_ids must be from 0 to {config.vocab_size - 1}": in_range(ids, config.vocab_size),
        f"token_type_ids must be from 0 to {config.type_vocab_size - 1}":
            in_range(segment_ids, config.type_vocab_size)}
    rows, length = tf.unstack(tf.shape(ids))
    with tf.control_dependencies([tf.debugging.Assert(condition, [message])
                                  for message, condition in conditions.items()]):
        # A batch of 0 rows can have 0 columns, but heads read the first.
        shape = tf.stack([rows, tf.maximum(length, 1)])
    return Tokens(*(tf.reshape(values, shape) for values in (ids, segment_ids, padding_mask)))


def _require_equal_shapes(inputs: Mapping[str, tf.Tensor], requirement: str) -> list[tf.Tensor]:
    """Returns tensors of one rank; their graph checks that they have one shape."""
    shapes = [tf.shape(value) for value in inputs.values()]
    equal = tf.reduce_all(tf.stack(shapes) == shapes[0])
    message = f"{', '.join(inputs)} must have {requirement}. Received:"
    with tf.control_dependencies([tf.debugging.Assert(equal, [message, *shapes])]):
        return [tf.identity(value) for value in inputs.values()]
