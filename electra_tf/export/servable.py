"""Trained networks whose graphs tokenize texts and decode answers.

Every signature takes batches and texts of any size. Words and tags of a batch's shorter texts are
padded with empty strings.
"""

import abc
import copy
import dataclasses
from collections.abc import Mapping, Sequence

import tensorflow as tf
import tf_keras

from electra_tf.checkpoints.weights import assign_weights
from electra_tf.config.model import EncoderConfig
from electra_tf.config.overrides import override
from electra_tf.formats.pretrained import Pretrained
from electra_tf.modeling import chunks
from electra_tf.modeling.electra import Discriminator
from electra_tf.modeling.encoder import Encoder, own_encoder
from electra_tf.modeling.fused import inference_mode
from electra_tf.modeling.inference import InferenceEncoder
from electra_tf.modeling.layers import Build
from electra_tf.modeling.task_heads import first_vectors
from electra_tf.platform.errors import UserError
from electra_tf.tasks.kinds.kind import ServedNetwork
from electra_tf.tasks.registry import KINDS, recipe
from electra_tf.tasks.task import TaskSpec
from electra_tf.text import words
from electra_tf.text.rows import RowEncoder, Tokens

Outputs = Mapping[str, tf.Tensor]
Signatures = dict[str, tf.types.experimental.ConcreteFunction]
"""Traced functions by the name that a request gives."""
DEFAULT, TOKEN_IDS = "serving_default", "token_ids"
TOKEN_INPUTS = ("input_ids", "token_type_ids", "attention_mask")
"""Inputs of the signature `token_ids`, int32 [B, L], with BERT's names."""
_TENSOR_PARALLEL = 2
"""Parts of a layer's computation: one request takes two cores."""


class Servable(abc.ABC):
    """A network with a head in float32 and signatures that take texts or token ids."""

    def __init__(self, encoder: InferenceEncoder | Encoder, head: tf_keras.layers.Layer,
                 texts: RowEncoder):
        self.encoder, self.head, self.texts = encoder, head, texts

    @property
    @abc.abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Names of the texts that `answer` takes."""

    @abc.abstractmethod
    def answer(self, *columns: tf.Tensor) -> Outputs:
        """Maps string [B] for every column to answers."""

    @abc.abstractmethod
    def score(self, tokens: Tokens) -> Outputs:
        """Maps token ids to outputs that are not decoded."""

    def for_inference(self, dtype: tf.DType) -> "Servable":
        """Returns the model on the faster encoder of inference; `dtype` is float32 or bfloat16."""
        config = self.encoder.config
        odd = config.num_heads % _TENSOR_PARALLEL or config.intermediate_size % _TENSOR_PARALLEL
        model = copy.copy(self)
        model.encoder = InferenceEncoder(self.encoder, dtype, 1 if odd else _TENSOR_PARALLEL)
        return model

    def save(self, directory: str, signatures: Signatures) -> None:
        """Writes a SavedModel; raises `OSError` or `tf.errors.OpError` if that fails."""
        weights = tf.Module()  # Keras's layers themselves would be saved with their own graphs.
        weights.all = [*self.encoder.variables, *self.head.variables]
        tf.saved_model.save(weights, directory, signatures=signatures, options=(
            tf.saved_model.SaveOptions(experimental_custom_gradients=False)))

    def signatures(self) -> Signatures:
        """Returns the traced functions by name."""
        return {DEFAULT: self._traced(self._answer_columns, self._text_specs()),
                TOKEN_IDS: self._traced(self._score_checked, _token_specs((None, None)))}

    def for_token_ids(self, shape: tuple[int | None, int | None]
                      ) -> tf.types.experimental.ConcreteFunction:
        """Returns `score`, traced for inputs [B, L], unchecked; None where a size varies."""
        return self._traced(lambda ids, segment_ids, mask: self.score(
            Tokens(ids, segment_ids, mask > 0)), _token_specs(shape))

    def _score_checked(self, *inputs: tf.Tensor) -> Outputs:
        return self.score(_checked_tokens(
            inputs, self.encoder.config, self.texts.vocabulary.cls_id))

    def _answer_columns(self, *columns: tf.Tensor) -> Outputs:
        named = dict(zip(self.columns, columns, strict=True))
        return self.answer(*_checked_shapes(named, "as many texts each"))

    def _text_specs(self) -> list[tf.TensorSpec]:
        return [tf.TensorSpec([None], tf.string, name) for name in self.columns]

    @staticmethod
    def _traced(function, specs: Sequence[tf.TensorSpec]):
        with inference_mode():
            return tf.function(function, autograph=False).get_concrete_function(*specs)


def _token_specs(shape: tuple[int | None, int | None]) -> list[tf.TensorSpec]:
    return [tf.TensorSpec(shape, tf.int32, name) for name in TOKEN_INPUTS]


class TextEncoder(Servable):
    """A pre-trained encoder, which embeds texts; it has no head."""

    columns = ("text",)

    def answer(self, *columns: tf.Tensor) -> Outputs:
        """Returns what `embed` does."""
        return self.embed(*columns)

    def score(self, tokens: Tokens) -> Outputs:
        """Returns `tokens`, float32 [B, L, H], the vectors of every position."""
        return {"tokens": self._hidden(tokens)}

    def _hidden(self, tokens: Tokens) -> tf.Tensor:
        """Returns the encoder's outputs, float32 [B, L, H]."""
        return tf.cast(self.encoder(*tokens), tf.float32)

    def signatures(self) -> Signatures:
        """Adds `embed` and `embed_tokens`."""
        return super().signatures() | {
            "embed": self._traced(self.embed, self._text_specs()),
            "embed_tokens": self._traced(self.embed_tokens, self._text_specs())}

    def embed(self, text: tf.Tensor) -> Outputs:
        """Returns the mean over all tokens, `pooled`, and the vector of [CLS], `cls`.

        Texts, string [B], are cut at the encoder's length; both are float32 [B, H].
        """
        outputs = self.embed_tokens(text)
        return {name: outputs[name] for name in ("pooled", "cls")}

    def embed_tokens(self, text: tf.Tensor) -> Outputs:
        """Returns what `embed` does, `tokens`, float32 [B, L, H], and `token_ids`, int32 [B, L].

        Rows are [CLS], the pieces and [SEP]. Vectors of padding are zero.
        """
        tokens = self.texts.encode(text)
        hidden = self._hidden(tokens)
        hidden = tf.where(tokens.valid[:, :, tf.newaxis], hidden, 0.0)
        lengths = tf.reduce_sum(tf.cast(tokens.valid, tf.float32), axis=1, keepdims=True)
        return {"pooled": tf.reduce_sum(hidden, axis=1) / lengths,
                "cls": first_vectors(hidden), "tokens": hidden, "token_ids": tokens.ids}


class Detector(TextEncoder):
    """The pre-trained discriminator, which detects replaced words of a text."""

    def answer(self, *columns: tf.Tensor) -> Outputs:
        """Maps texts, string [B], to `words`, string [B, W], and `replaced_probability`.

        The probability is float32 [B, W], the highest of a word's pieces. Texts have any length.
        """
        split = words.split_as_tokenized(self.texts, *columns)
        rows = words.in_rows(self.texts, split)
        pieces = tf.ragged.range(rows.sizes)
        word = tf.cast(pieces.value_rowids(), tf.int32)
        first = tf.gather(rows.first_piece, word)
        positions = tf.stack([first[:, 0], first[:, 1] + pieces.flat_values], axis=1)
        probabilities = tf.gather_nd(chunks.in_chunks(
            lambda *part: self.score(Tokens(*part))["replaced_probability"], rows.tokens,
            chunks.rows_of(tf.shape(rows.tokens.ids)[1]),
            tf.TensorSpec([None, None], tf.float32)), positions)
        of_words = tf.math.segment_max(probabilities, word)
        return {"words": split.texts.to_tensor(""),
                "replaced_probability": words.per_text(split, of_words, 0.0)}

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
        super().__init__(network.encoder, network.head, network.texts)
        self._network, self._kind = network, KINDS[network.spec.kind]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the texts that the kind reads."""
        return self._kind.served_inputs(self._network.spec)

    def answer(self, *columns: tf.Tensor) -> Outputs:
        """Maps string [B] for every column to answers."""
        return self._kind.served_answer(self._served(), *columns)

    def score(self, tokens: Tokens) -> Outputs:
        """Maps token ids to the network's outputs."""
        return self._kind.served_scores(self._served(), tokens)

    def _served(self) -> ServedNetwork:
        return dataclasses.replace(self._network, encoder=self.encoder)


def build(networks: Pretrained, threshold: float | None = None) -> Servable:
    """Returns a fine-tuned model, a pre-trained discriminator or an encoder, in float32.

    `threshold` is the logit of "no answer" above which no answer is given; None gives every answer.
    """
    if networks.task is None:
        return _of_pretrained(networks)
    spec = TaskSpec.of_facts(networks.task, networks.source)
    config = override(recipe(spec.name, networks.model), networks.task_settings).task
    model = KINDS[spec.kind].objective(spec, config).build_model(
        networks.model, seed=0, policy="float32")
    assign_weights(model.variables, networks.weights, networks.source)
    return ServedTask(ServedNetwork(
        encoder=model.encoder, head=model.head, spec=spec, config=config, threshold=threshold,
        texts=RowEncoder(networks.text, config.max_seq_length)))


def _of_pretrained(networks: Pretrained) -> TextEncoder:
    """Returns a discriminator, or an encoder without its head; refuses energies."""
    if networks.has_energies:
        raise UserError(f"{networks.source} is of objective.name={networks.objective}: its outputs "
                        "are energies, not the probability of a replaced token. `python -m "
                        "electra_tf.apps.tools.score_text` ranks texts by them; fine-tuning takes "
                        "its encoder.")
    config = networks.model.discriminator
    texts = RowEncoder(networks.text, config.max_position_embeddings)
    encoder = own_encoder(config, Build(seed=0))
    if not networks.has_discriminator:
        assign_weights(encoder.variables, networks.weights, networks.source)
        return TextEncoder(encoder, tf.Module(), texts)
    discriminator = Discriminator(encoder, Build(seed=0))
    assign_weights(discriminator.variables, networks.weights, networks.source)
    return Detector(encoder, discriminator.head, texts)


def _checked_tokens(inputs: Sequence[tf.Tensor], config: EncoderConfig, cls_id: int) -> Tokens:
    """Returns the inputs of the signature `token_ids`; its graph checks their values.

    [CLS] at the end of a row is padding, also where the mask has a 1: TensorFlow Serving's
    `pad_variable_length_inputs` pads every input with its first element.
    """
    ids, segment_ids, mask = _checked_shapes(
        dict(zip(TOKEN_INPUTS, inputs, strict=True)), "one shape")
    followed = tf.cumsum(tf.cast(ids != cls_id, tf.int32), axis=1, reverse=True) > 0
    valid = (mask > 0) & (followed | (tf.range(tf.shape(ids)[1]) == 0))
    positions = config.max_position_embeddings

    def below(values: tf.Tensor, size: int, name: str) -> tf.Operation:
        fits = (values >= 0) & (values < size) | ~valid
        return _require(tf.reduce_all(fits), f"{name} must be from 0 to {size - 1}")

    checks = [
        _require(tf.reduce_all(tf.reduce_any(valid, axis=1)),
                 "attention_mask must have a 1 in every row"),
        _require(tf.logical_not(tf.reduce_any(valid[:, positions:])),
                 f"attention_mask: the model reads rows of at most {positions} tokens; received "
                 "a 1 beyond"),
        below(ids, config.vocab_size, TOKEN_INPUTS[0]),
        below(segment_ids, config.type_vocab_size, TOKEN_INPUTS[1])]
    rows, length = tf.unstack(tf.shape(ids))
    with tf.control_dependencies(checks):
        # A batch of 0 rows can have 0 columns, but heads read the first.
        shape = tf.stack([rows, tf.maximum(length, 1)])
    return Tokens(*(tf.reshape(values, shape) for values in (ids, segment_ids, valid)))


def _checked_shapes(inputs: Mapping[str, tf.Tensor], wanted: str) -> list[tf.Tensor]:
    """Returns tensors of one rank; their graph checks that they have one shape."""
    shapes = [tf.shape(value) for value in inputs.values()]
    same = tf.reduce_all(tf.stack(shapes) == shapes[0])
    message = f"{', '.join(inputs)} must have {wanted}. Received:"
    with tf.control_dependencies([tf.debugging.Assert(same, [message, *shapes])]):
        return [tf.identity(value) for value in inputs.values()]


def _require(condition: tf.Tensor, message: str) -> tf.Operation:
    return tf.debugging.Assert(condition, [message])
