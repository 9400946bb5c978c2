"""Tagging: one label for every word of a sentence."""

import collections
import dataclasses
import functools
import re
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf
from seqeval import metrics
from sklearn.metrics import f1_score

from electra_tf.config.finetuning import TaskConfig
from electra_tf.core.errors import UserError, shown
from electra_tf.data.buckets import Row, RowBatch
from electra_tf.modeling import inference
from electra_tf.modeling.rng import Rng
from electra_tf.modeling.task_heads import TaskNetwork
from electra_tf.objectives.objective import LossOutput, fraction
from electra_tf.tasks.files import read_tagged
from electra_tf.tasks.kinds import base
from electra_tf.tasks.tag_schemes import as_iob2, span_parts
from electra_tf.tasks.task import Examples, Kind, TaggedExample, TaskSpec
from electra_tf.text import words
from electra_tf.text.rows import CHUNK, RowEncoder, Tokens, token_rows

WORD_SCORERS = {"accuracy": metrics.accuracy_score,
                "f1_macro": functools.partial(f1_score, average="macro", zero_division=0)}
"""Scores of tags without spans; their micro-averaged F1 equals the accuracy."""
SPAN_SCORERS = {"f1": metrics.f1_score, "precision": metrics.precision_score,
                "recall": metrics.recall_score}


class TaggingObjective(base.TaskObjective):
    """The cross entropy of every word's tag, averaged over words by default."""

    target, hidden_layer = "tag", False

    def loss_mask(self, batch: RowBatch) -> tf.Tensor:
        """Marks the words, bool [B, W]; with `tagging_loss_by_sentence` the rows, bool [B]."""
        return batch.present if self.config.tagging_loss_by_sentence else _is_word(batch)

    def compute(self, model: TaskNetwork, inputs: RowBatch, rng: Rng,
                *, training: bool) -> LossOutput:
        """Needs "first_piece" and "tag", int32 [B, W].

        Details hold "tags", int32 [B, W], and their "probability", float32 [B, W].
        """
        dropout = rng if training else None
        is_word, first_pieces = _is_word(inputs), inputs.targets["first_piece"]
        hidden = model.encoder(inputs.ids, inputs.segment_ids, inputs.padding_mask, dropout)
        logits = model.head(tf.gather(hidden, first_pieces, batch_dims=1), dropout)
        tags = tf.argmax(logits, axis=-1, output_type=tf.int32)
        losses = self.label_losses(inputs.targets["tag"], logits)
        return LossOutput({"loss": base.sum_where(losses, is_word)},
                          {"accuracy": fraction(tags == inputs.targets["tag"], is_word)},
                          {"tags": tags,
                           "probability": tf.reduce_max(tf.nn.softmax(logits), axis=-1)})


class Tagging(base.TaskKind):
    """The task kind that labels every word of a sentence."""

    kind = Kind.TAGGING
    metrics = (*SPAN_SCORERS, "accuracy")
    objective_class = TaggingObjective
    hugging_face = base.HuggingFaceHead(
        architecture="ElectraForTokenClassification", layers={"classifier": ("dense",)})
    inputs = ("text",)
    read_file = staticmethod(read_tagged)

    def build_spec(self, name: str, labels: tuple[str, ...] = ()) -> TaskSpec:
        """Returns a task; tags without spans, such as parts of speech, have scores per word."""
        has_spans = not labels or span_parts(labels)[0]
        return dataclasses.replace(
            super().build_spec(name, labels), text_columns=("words",), label_column="tags",
            metrics=self.metrics if has_spans else tuple(WORD_SCORERS))

    def example(self, spec: TaskSpec, key: str, value: str | Sequence[str]) -> TaggedExample:
        """Returns a sentence to predict: its words, or a text that is split at spaces."""
        # Spaces are those of `tf.strings.split`, which exports use.
        words = tuple([word.decode() for word in value.encode().split()]
                      if isinstance(value, str) else value)
        if not all(isinstance(word, str) and word for word in words):
            raise UserError(f"the task {spec.name} reads sentences: texts or lists of words. "
                            f"Received: {shown(value)}")
        return TaggedExample(key=key, words=words)

    def baseline(self, spec: TaskSpec, train: Examples, examples: Examples) -> base.Baseline:
        """Predicts the most frequent tag of the training examples for every word."""
        ((tag, _),) = collections.Counter(
            tag for example in train for tag in example.tags).most_common(1)
        tags = [example.tags for example in examples]
        return f"always {tag}", tag_scores(spec.metrics, tags, [[tag] * len(part) for part in tags])

    def encode(self, spec: TaskSpec, examples: Examples, encoder: RowEncoder,
               config: TaskConfig) -> base.Split:
        """Returns rows that hold all words in order; a sentence that is too long becomes several.

        Targets are "first_piece", the position of every word, and "tag", 0 if unknown, int32 both.
        """
        in_rows = tf.function(functools.partial(words.pack_in_rows, encoder), autograph=False,
                              reduce_retracing=True)
        index = {tag: number for number, tag in enumerate(spec.labels)}
        rows: list[Row] = []
        sizes = [np.zeros(0, np.int32)]
        for begin in range(0, len(examples), CHUNK):
            # Pieces of all words, packed into rows.
            part = examples[begin:begin + CHUNK]
            split = words.tokenize(encoder, tf.RaggedTensor.from_row_lengths(
                tf.constant([word for example in part for word in example.words], tf.string),
                [len(example.words) for example in part]))
            sizes.append(split.lengths.numpy() + 2)  # [CLS] and [SEP].
            word_rows = in_rows(split)

            # The first piece and the tag of every word, by row.
            row, column = word_rows.first_piece.numpy().T
            tags = np.array([index.get(tag, 0) for example in part for tag in example.tags or
                             [spec.labels[0]] * len(example.words)], np.int32)
            ends = np.searchsorted(row, np.arange(1, len(word_rows.tokens.ids)))
            rows += [Row(*tokens, {}, {"first_piece": first_pieces, "tag": row_tags})
                     for tokens, first_pieces, row_tags in zip(
                         token_rows(word_rows.tokens), np.split(column, ends),
                         np.split(tags, ends), strict=True)]
        return base.Split(
            rows, score=lambda results, _: score(spec, examples, rows, results),
            lengths=np.concatenate(sizes), limit=encoder.max_length,
            what="words with [CLS] and [SEP]")

    def objective(self, spec: TaskSpec, config: TaskConfig) -> base.TaskObjective:
        """Returns the objective; `UserError` for two ways to weigh words."""
        if config.class_weights and config.tagging_loss_by_sentence:
            raise UserError("--class_weights divides the loss by the words' weights; leave out "
                            "task.tagging_loss_by_sentence.")
        return super().objective(spec, config)

    def formatters(self, spec: TaskSpec) -> Mapping[str, base.Formatter]:
        """Returns CoNLL columns, with _ for spaces in words, and a table with a row per word."""
        return {
            ".txt": lambda records: "".join("".join(
                re.sub(r"[ \t\r\n]+", "_", word) + f" {tag}\n" for word, tag in zip(
                    record["words"], record["prediction"], strict=True)) + "\n"
                for record in records),
            ".tsv": lambda records: base.table([
                {"key": record["key"], "word": record["texts"][0],
                 "prediction": record["prediction"], "probability": f"{record['probability']:.6g}"}
                | ({"gold": record["gold"]} if "gold" in record else {})
                for record in self.decisions(records)])}

    def decisions(self, records: Sequence[base.Record]) -> Sequence[base.Record]:
        """Returns a record for every word; "texts" holds the word and its sentence."""
        return [{"key": record["key"], "texts": [word, " ".join(record["words"])]}
                | {name: record[name][number] for name in ("prediction", "probability", "gold")
                   if name in record}
                for record in records for number, word in enumerate(record["words"])]

    def served_answer(self, network: base.ServedNetwork, *columns: tf.Tensor) -> base.Outputs:
        """Answers `words`, split at spaces, with `tags` and their `scores`, [B, W]."""
        split = words.tokenize(network.row_encoder, tf.strings.split(*columns))
        rows = words.pack_in_rows(network.row_encoder, split)
        every = inference.map_in_chunks(
            lambda *part: self.served_scores(network, Tokens(*part))["probabilities"],
            rows.tokens, tf.TensorSpec([None, None, len(network.spec.labels)], tf.float32))
        shares = tf.gather_nd(every, rows.first_piece)
        tags = tf.gather(tf.constant(network.spec.labels), tf.argmax(shares, axis=-1))
        return {"words": split.texts.to_tensor(""), "tags": words.per_text(split, tags, ""),
                "scores": words.per_text(split, tf.reduce_max(shares, axis=-1), 0.0)}

    def served_scores(self, network: base.ServedNetwork, tokens: Tokens) -> base.Outputs:
        """Returns `logits` and `probabilities`, float32 [B, L, tags]; first pieces count."""
        logits = network.head(network.hidden(tokens))
        return {"logits": logits, "probabilities": tf.nn.softmax(logits)}


def score(spec: TaskSpec, examples: Examples, rows: Sequence[Row],
          results: base.Results) -> base.Scored:
    """Returns predictions and scores; `results` hold the objective's outputs, [W], for each row."""
    indices, shares = (np.concatenate([result[name][:len(row.word_targets["tag"])] for row, result
                                       in zip(rows, results, strict=True)])
                       for name in ("tags", "probability"))
    ends = np.cumsum([len(example.words) for example in examples])
    records = [{"key": example.key, "words": list(example.words)}
               | ({} if example.tags is None else {"gold": list(example.tags)})
               | {"prediction": [spec.labels[index] for index in indices[first:end]],
                  "probability": shares[first:end].tolist()}
               for example, first, end in zip(examples, [0, *ends[:-1]], ends, strict=True)]
    if any(example.tags is None for example in examples):
        return base.Scored(records=records, scores={})
    return base.Scored(records=records, scores=tag_scores(
        spec.metrics, [example.tags for example in examples],
        [record["prediction"] for record in records]))


def tag_scores(names: Sequence[str], tags: Sequence[Sequence[str]],
               predictions: Sequence[Sequence[str]]) -> dict[str, float]:
    """Returns the named scores, keys of `WORD_SCORERS` or `SPAN_SCORERS`.

    There is a list of tags, of any scheme, per sentence. A span is correct if its first word, last
    word and type are, as in the CoNLL evaluation script. As in that script, a predicted "I-"
    without a span before it begins one.
    """
    words = [[tag for sentence in part for tag in sentence] for part in (tags, predictions)]
    parts = span_parts({*words[0], *words[1]})[0]
    spans = [[list(as_iob2(sentence, parts)) for sentence in part] for part in (tags, predictions)]
    return {name: float(WORD_SCORERS[name](*words) if name in WORD_SCORERS
                        else SPAN_SCORERS[name](*spans, zero_division=0)) for name in names}


def _is_word(batch: RowBatch) -> tf.Tensor:
    return batch.targets["first_piece"] > 0  # [CLS] is at 0: no word begins there.
