"""Tiny SavedModels of string ops, with the outputs that a served ELECTRA has."""

from pathlib import Path

import tensorflow as tf
import tensorflow_text as tf_text

LABELS = ["negative", "neutral", "positive"]


def _signature(*names):
    return [tf.TensorSpec([None], tf.string, name=name) for name in names]


class Echo(tf.Module):
    """One input, one output, one weight."""

    def __init__(self):
        super().__init__()
        self.unused = tf.Variable("a few words")

    @tf.function(input_signature=_signature("text"))
    def __call__(self, text):
        return {"text": tf.identity(text)}


class Texts(tf.Module):
    """Every kind of answer that the page shows; nothing is learned."""

    @tf.function(input_signature=_signature("text"))
    def classify(self, text):
        index = tf.strings.length(text) % 3
        probabilities = 0.1 + 0.7 * tf.one_hot(index, 3)
        return {"label": tf.gather(LABELS, index), "score": tf.reduce_max(probabilities, -1),
                "labels": tf.tile([LABELS], [tf.size(text), 1]), "probabilities": probabilities}

    @tf.function(input_signature=_signature("text"))
    def label(self, text):
        """The labels of at least as many characters as the text has; 1 / 8 for each character."""
        lengths = tf.cast(tf.strings.length(LABELS), tf.float32)
        labels = tf.tile([LABELS], [tf.size(text), 1])
        probabilities = tf.tile([lengths / 8.0], [tf.size(text), 1])
        chosen = tf.strings.length(labels) >= tf.strings.length(text)[:, tf.newaxis]
        return {"prediction": tf.ragged.boolean_mask(labels, chosen).to_tensor(""),
                "labels": labels, "probabilities": probabilities}

    @tf.function(input_signature=_signature("text"))
    def replaced(self, text):
        words = tf.strings.split(text).to_tensor("")
        length = tf.cast(tf.strings.length(words), tf.float32)
        return {"words": words, "replaced_probability": 1.0 - tf.exp(-length / 6.0)}

    @tf.function(input_signature=_signature("text"))
    def tag(self, text):
        words = tf.strings.split(text).to_tensor("")
        capital = tf.strings.regex_full_match(words, "[A-Z].*")
        tags = tf.where(capital, "B-PER", tf.where(words == "", "", "O"))
        return {"words": words, "tags": tags}

    @tf.function(input_signature=_signature("question", "context"))
    def answer(self, question, context):
        """The context's first five characters, unless the question is empty."""
        end = tf.minimum(tf.strings.length(context, "UTF8_CHAR"), 5)
        start = tf.zeros_like(end)
        return {
            "answer": tf.strings.substr(context, start, end, "UTF8_CHAR"), "start": start,
            "end": end, "no_answer_probability": tf.where(question == "", 0.9, 0.1),
            "score": tf.fill(tf.shape(question), 0.75)}

    @tf.function(input_signature=_signature("text", "text_pair"))
    def similarity(self, text, text_pair):
        return {"score": tf.cast(text == text_pair, tf.float32)}


class Numbers(tf.Module):
    """Types, shapes and failures."""

    def __init__(self):
        super().__init__()
        self._tokenizer = tf_text.FastWordpieceTokenizer(
            ["a", "##b", "[UNK]"], token_out_type=tf.int32)

    @tf.function(input_signature=[
        tf.TensorSpec([None, None], tf.float32, name="x"),
        tf.TensorSpec([None], tf.int32, name="n"),
        tf.TensorSpec([None], tf.bool, name="flag")])
    def mixed(self, x, n, flag):
        return {"sum": tf.reduce_sum(x, -1) + tf.cast(n, tf.float32), "flag": flag,
                "rows": tf.fill(tf.shape(n), tf.size(n))}

    @tf.function(input_signature=_signature("text"))
    def batch_size(self, text):
        return {"text": tf.identity(text), "batch": tf.fill(tf.shape(text), tf.size(text))}

    @tf.function(input_signature=_signature("text"))
    def refuses_bad(self, text):
        with tf.control_dependencies([tf.debugging.Assert(
                tf.reduce_all(text != "bad"), ["bad is not allowed"])]):
            return {"text": tf.identity(text), "batch": tf.fill(tf.shape(text), tf.size(text))}

    @tf.function(input_signature=_signature("text"))
    def count(self, text):
        """Outputs that have no rows."""
        return {"count": tf.size(text), "unit": tf.constant("texts")}

    @tf.function(input_signature=_signature("image_bytes"))
    def raw(self, image_bytes):
        return {"copy_bytes": tf.identity(image_bytes), "copy": tf.identity(image_bytes)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
    def divide(self, x):
        return {"y": x / 0.0, "x": tf.identity(x)}

    @tf.function(input_signature=_signature("text"))
    def tokens(self, text):
        """Ops that TensorFlow itself hasn't got."""
        return {"tokens": self._tokenizer.tokenize(text).to_tensor(-1)}

    @tf.function(input_signature=_signature("text"))
    def slow(self, text):
        """Half a second or so, for tests of what happens meanwhile."""
        x = tf.random.stateless_uniform([300, 300], [1, 2])
        for _ in tf.range(1000):
            x = x @ x / tf.norm(x)
        return {"text": tf.identity(text), "norm": tf.fill(tf.shape(text), tf.norm(x))}


def save_echo(path: Path) -> None:
    module = Echo()
    tf.saved_model.save(module, str(path), signatures={"serving_default": module.__call__})


def save_texts(path: Path) -> None:
    module = Texts()
    tf.saved_model.save(module, str(path), signatures={
        "serving_default": module.classify, "replaced_words": module.replaced, "tags": module.tag,
        "question_answering": module.answer, "similarity": module.similarity,
        "label_sets": module.label})


def save_numbers(path: Path) -> None:
    module = Numbers()
    names = ("mixed", "batch_size", "refuses_bad", "count", "raw", "divide", "tokens", "slow")
    tf.saved_model.save(module, str(path), signatures={
        "serving_default": module.mixed, **{name: getattr(module, name) for name in names}})
