"""What an exported network answers to: strings in, answers out, decoded inside the graph.

Every signature takes batches and texts of any size. Words and tags of a batch's shorter texts are
filled up with empty strings.
"""

import abc
import re
from collections.abc import Callable, Mapping, Sequence

import tensorflow as tf
import tf_keras

from electra_tf.config.finetuning import TaskConfig
from electra_tf.export import chunks, questions
from electra_tf.export.refusals import TOKEN_INPUTS, checked_shapes, checked_tokens
from electra_tf.modeling.encoder import Encoder
from electra_tf.modeling.inference import InferenceEncoder
from electra_tf.modeling.task_heads import (
    SpanBeams,
    answer_positions,
    first_vectors,
    last_layers,
    vectors_at,
)
from electra_tf.modeling.tracing import inference_mode
from electra_tf.tasks.examples import Kind
from electra_tf.tasks.glue import input_names
from electra_tf.tasks.task import TaskSpec
from electra_tf.text import words
from electra_tf.text.rows import RowEncoder, Tokens

Outputs = Mapping[str, tf.Tensor]
DEFAULT = "serving_default"
TOKEN_IDS = "token_ids"
DETECT, EMBED, EMBED_TOKENS = "detect", "embed", "embed_tokens"


class Served(tf.Module, abc.ABC):
    """A network and how its answers are read; the signatures' functions and their inputs.

    Args:
        encoder: an `Encoder` too, which computes the same, for padding as well.
        head: a layer in float32.
        texts: turns text into tokens.
    """

    def __init__(self, encoder: InferenceEncoder | Encoder, head: tf_keras.layers.Layer,
                 texts: RowEncoder):
        super().__init__(name="served")
        # Behind a function, where TensorFlow doesn't find Keras's layers: it would save them with
        # graphs of their own. The weights are what the signatures need.
        self._parts = lambda: (encoder, head, texts)
        self._weights = [*encoder.variables, *head.variables]

    @property
    def encoder(self) -> InferenceEncoder | Encoder:
        """Below the head."""
        return self._parts()[0]

    @property
    def head(self) -> tf_keras.layers.Layer:
        """Its variables are float32."""
        return self._parts()[1]

    @property
    def texts(self) -> RowEncoder:
        """How text is read."""
        return self._parts()[2]

    @property
    @abc.abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Names of the texts that `answer` takes."""

    @abc.abstractmethod
    def answer(self, *columns: tf.Tensor) -> Outputs:
        """Maps string [B] for every column to answers."""

    @abc.abstractmethod
    def score(self, tokens: Tokens) -> Outputs:
        """Maps token ids to what is computed of them, undecoded."""

    def signatures(self) -> dict[str, tf.types.experimental.ConcreteFunction]:
        """Returns the traced functions by the name that a request gives."""
        return {DEFAULT: self._traced(self._answer_columns, self._text_specs()),
                TOKEN_IDS: self._traced(self._score_checked, _token_specs((None, None)))}

    def for_token_ids(self, shape: tuple[int | None, int | None]
                      ) -> tf.types.experimental.ConcreteFunction:
        """Returns `score`, traced for inputs [B, L], unchecked; None where a size varies."""
        return self._traced(self._score_ids, _token_specs(shape))

    def _score_ids(self, ids: tf.Tensor, segment_ids: tf.Tensor, mask: tf.Tensor) -> Outputs:
        return self.score(Tokens(ids, segment_ids, mask > 0))

    def _score_checked(self, *inputs: tf.Tensor) -> Outputs:
        return self.score(checked_tokens(inputs, self.encoder.config))

    def _answer_columns(self, *columns: tf.Tensor) -> Outputs:
        named = dict(zip(self.columns, columns, strict=True))
        return self.answer(*checked_shapes(named, "as many texts each"))

    def _text_specs(self) -> list[tf.TensorSpec]:
        return [tf.TensorSpec([None], tf.string, name) for name in self.columns]

    @staticmethod
    def _traced(function, specs: Sequence[tf.TensorSpec]):
        with inference_mode():
            return tf.function(function, autograph=False).get_concrete_function(*specs)

    def _hidden(self, tokens: Tokens) -> tf.Tensor:
        """Returns [B, L, H], float32."""
        return tf.cast(self.encoder(*tokens), tf.float32)

    def _first(self, tokens: Tokens) -> tf.Tensor:
        """Returns [CLS]'s vectors [B, H], float32."""
        return tf.cast(self.encoder.first(*tokens), tf.float32)


def _token_specs(shape: tuple[int | None, int | None]) -> list[tf.TensorSpec]:
    return [tf.TensorSpec(shape, tf.int32, name) for name in TOKEN_INPUTS]


class _ServedTask(Served):
    """A fine-tuned network."""

    def __init__(self, encoder: InferenceEncoder | Encoder, head: tf_keras.layers.Layer,
                 texts: RowEncoder, spec: TaskSpec, config: TaskConfig, threshold: float | None):
        super().__init__(encoder, head, texts)
        self.spec, self.config, self.threshold = spec, config, threshold

    @property
    def columns(self) -> tuple[str, ...]:
        """The task's own where they can name an input, else text_1 and text_2."""
        names = input_names(self.spec.name, self.spec.texts)
        usable = all(re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) for name in names)
        return names if usable else tuple(f"text_{number + 1}" for number in range(len(names)))


class Classifier(_ServedTask):
    """Answers `label`, its probability `score`, and all `labels` with their `probabilities`."""

    def answer(self, *columns: tf.Tensor) -> Outputs:
        """Maps one or two texts, string [B]."""
        shares = self.score(self.texts.encode(*columns))["probabilities"]
        labels = tf.constant(self.spec.label_words)
        repeated = tf.tile(labels[tf.newaxis], [tf.shape(shares)[0], 1])
        return {"label": tf.gather(labels, tf.argmax(shares, axis=-1)),
                "score": tf.reduce_max(shares, axis=-1), "labels": repeated,
                "probabilities": shares}

    def score(self, tokens: Tokens) -> Outputs:
        """Returns `logits` and `probabilities`, float32 [B, classes]."""
        logits = self.head(self._first(tokens))
        return {"logits": logits, "probabilities": tf.nn.softmax(logits)}


class Regressor(_ServedTask):
    """Answers a `score` on the task's scale."""

    def answer(self, *columns: tf.Tensor) -> Outputs:
        """Maps one or two texts, string [B]."""
        return self.score(self.texts.encode(*columns))

    def score(self, tokens: Tokens) -> Outputs:
        """Returns `score`, float32 [B]."""
        numbers = tf.squeeze(self.head(self._first(tokens)), axis=-1)
        return {"score": numbers * self.spec.scale + self.spec.offset}


class Tagger(_ServedTask):
    """Answers `words`, what stands between spaces, with `tags` and their `scores`, [B, W]."""

    @property
    def columns(self) -> tuple[str, ...]:
        """A sentence in one string."""
        return ("text",)

    def answer(self, *columns: tf.Tensor) -> Outputs:
        """Maps sentences, string [B], of any length."""
        split = words.split_at_spaces(self.texts, *columns)
        rows = words.in_rows(self.texts, split)
        shares = (self._shares_of_words(rows) if self.config.feature_based else tf.gather_nd(
            self._in_chunks(lambda *part: self.score(Tokens(*part))["probabilities"],
                            rows.tokens), rows.first_piece))
        tags = tf.gather(tf.constant(self.spec.labels), tf.argmax(shares, axis=-1))
        return {"words": split.texts.to_tensor(""),
                "tags": words.per_text(split, tags, ""),
                "scores": words.per_text(split, tf.reduce_max(shares, axis=-1), 0.0)}

    def score(self, tokens: Tokens) -> Outputs:
        """Returns `logits` and `probabilities`, float32 [B, L, tags]; first pieces' count."""
        if self.config.feature_based:
            logits = self.head(self._features(tokens), tokens.valid)
        else:
            logits = self.head(self._hidden(tokens))
        return {"logits": logits, "probabilities": tf.nn.softmax(logits)}

    def _features(self, tokens: Tokens) -> tf.Tensor:
        return tf.cast(last_layers(self.encoder.all_layers(*tokens)), tf.float32)

    def _shares_of_words(self, rows: words.WordRows) -> tf.Tensor:
        """Lets the recurrent head read words, not pieces, as in training."""
        columns = tf.RaggedTensor.from_value_rowids(
            rows.first_piece[:, 1], tf.cast(rows.first_piece[:, 0], tf.int64),
            nrows=tf.cast(tf.shape(rows.tokens.ids)[0], tf.int64))
        places = columns.to_tensor(0)
        count, most = tf.unstack(tf.shape(places))
        places = tf.reshape(places, [count, tf.maximum(most, 1)])  # A scan has a step at least.

        def shares(*part: tf.Tensor) -> tf.Tensor:
            *tokens, first = part
            features = vectors_at(self._features(Tokens(*tokens)), first)
            return tf.nn.softmax(self.head(features, first > 0))

        return tf.gather_nd(self._in_chunks(shares, [*rows.tokens, places]), tf.where(places > 0))

    def _in_chunks(self, compute: Callable[..., tf.Tensor],
                   rows: Sequence[tf.Tensor]) -> tf.Tensor:
        """Returns float32 [R, L, tags]."""
        return chunks.in_chunks(compute, rows, chunks.rows_of(tf.shape(rows[0])[1]),
                                tf.TensorSpec([None, None, len(self.spec.labels)], tf.float32))


class Answerer(_ServedTask):
    """Answers `answer`, where it stands, its `score`, and how likely there is none."""

    @property
    def columns(self) -> tuple[str, ...]:
        """A question and where to look."""
        return ("question", "context")

    def answer(self, *columns: tf.Tensor) -> Outputs:
        """Maps questions and contexts, string [B].

        Returns:
            `answer`, string [B], empty if that there is none scores above the threshold found in
            training; `start` and `end`, int32 [B], characters of the context; `score`, float32
            [B], the probability of this span in its window; `no_answer_probability`, float32 [B],
            if the network was trained to tell.
        """
        config = self.config
        asked, contexts = columns
        tokens, windows, pieces = questions.encode(
            self.texts, asked, contexts, stride=config.doc_stride,
            max_query=config.max_query_length)
        beams = questions.beams_of(self._beams, tokens)
        found = questions.answers(contexts, windows, pieces, beams,
                                  max_pieces=config.max_answer_length)
        outputs = {"answer": found.text, "start": found.start, "end": found.end,
                   "score": found.score}
        if self.head.impossible is None:
            return outputs
        if self.threshold is not None:
            given = found.impossible <= self.threshold
            outputs["answer"] = tf.where(given, found.text, "")
            outputs |= {name: tf.where(given, outputs[name], 0) for name in ("start", "end")}
        return outputs | {"no_answer_probability": tf.sigmoid(found.impossible)}

    def score(self, tokens: Tokens) -> Outputs:
        """Returns the fields of `SpanBeams`."""
        beams = self._beams(tokens)._asdict()
        return beams if self.head.impossible is not None else {
            name: value for name, value in beams.items() if name != "impossible"}

    def _beams(self, tokens: Tokens) -> SpanBeams:
        allowed = answer_positions(tokens.segment_ids, tokens.valid)
        size = tf.minimum(self.config.beam_size, tf.shape(allowed)[1])
        beams = self.head.beams(self._hidden(tokens), allowed, size)
        if beams.impossible is not None:
            return beams
        return beams._replace(impossible=tf.zeros(tf.shape(allowed)[:1]))


class Detector(Served):
    """The pre-trained discriminator: which words of a text look replaced."""

    @property
    def columns(self) -> tuple[str, ...]:
        """One text."""
        return ("text",)

    def answer(self, *columns: tf.Tensor) -> Outputs:
        """Maps texts, string [B], of any length.

        Returns:
            `words`, string [B, W], and `replaced_probability`, float32 [B, W], of a word's most
            suspicious piece.
        """
        split = words.split_as_tokenized(self.texts, *columns)
        rows = words.in_rows(self.texts, split)
        pieces = tf.ragged.range(rows.sizes)
        word = tf.cast(pieces.value_rowids(), tf.int32)
        first = tf.gather(rows.first_piece, word)
        places = tf.stack([first[:, 0], first[:, 1] + pieces.flat_values], axis=1)
        shares = tf.gather_nd(chunks.in_chunks(
            lambda *part: self.score(Tokens(*part))["replaced_probability"], rows.tokens,
            chunks.rows_of(tf.shape(rows.tokens.ids)[1]),
            tf.TensorSpec([None, None], tf.float32)), places)
        of_words = tf.math.segment_max(shares, word)
        return {"words": split.texts.to_tensor(""),
                "replaced_probability": words.per_text(split, of_words, 0.0)}

    def score(self, tokens: Tokens) -> Outputs:
        """Returns `replaced_probability`, float32 [B, L], of every position."""
        return {"replaced_probability": tf.sigmoid(self.head(self._hidden(tokens)))}

    def signatures(self) -> dict[str, tf.types.experimental.ConcreteFunction]:
        """Adds `detect`, the default's other name, `embed` and `embed_tokens`."""
        found = super().signatures()
        return found | {DETECT: found[DEFAULT],
                        EMBED: self._traced(self.embed, self._text_specs()),
                        EMBED_TOKENS: self._traced(self.embed_tokens, self._text_specs())}

    def embed(self, text: tf.Tensor) -> Outputs:
        """Maps texts, string [B], cut at the encoder's length.

        Returns:
            `pooled`, float32 [B, H], the mean over word pieces; `cls`, float32 [B, H].
        """
        found = self.embed_tokens(text)
        return {name: found[name] for name in ("pooled", "cls")}

    def embed_tokens(self, text: tf.Tensor) -> Outputs:
        """Maps texts, string [B], cut at the encoder's length.

        Returns:
            What `embed` does; `tokens`, float32 [B, L, H], and their `token_ids`, int32 [B, L], of
            [CLS], pieces, [SEP]; zeros where a text has fewer.
        """
        tokens = self.texts.encode(text)
        hidden = self._hidden(tokens)
        hidden = tf.where(tokens.valid[:, :, tf.newaxis], hidden, 0.0)
        special = [self.texts.vocabulary.cls_id, self.texts.vocabulary.sep_id]
        pieces = tokens.valid & tf.reduce_all(
            tokens.ids[:, :, tf.newaxis] != tf.constant(special), axis=-1)
        shares = tf.cast(pieces, tf.float32)[:, :, tf.newaxis]
        return {"pooled": tf.math.divide_no_nan(
                    tf.reduce_sum(hidden * shares, axis=1), tf.reduce_sum(shares, axis=1)),
                "cls": first_vectors(hidden), "tokens": hidden, "token_ids": tokens.ids}


TASKS: Mapping[Kind, type[_ServedTask]] = {
    Kind.CLASSIFICATION: Classifier, Kind.REGRESSION: Regressor, Kind.TAGGING: Tagger,
    Kind.QUESTION_ANSWERING: Answerer}
