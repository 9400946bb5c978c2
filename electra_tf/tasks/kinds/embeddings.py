"""Sentence embeddings: vectors of texts, whose cosine is high for texts of similar meaning."""

import dataclasses
import functools
import io
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from electra_tf.config.finetuning import FinetuningConfig, TaskConfig
from electra_tf.config.model import ModelConfig
from electra_tf.core.errors import UserError, shown
from electra_tf.data.buckets import Row, RowBatch
from electra_tf.modeling.fused import dimensions
from electra_tf.modeling.pooling import PoolingHead
from electra_tf.modeling.rng import Rng
from electra_tf.modeling.task_heads import TaskNetwork
from electra_tf.objectives.objective import LossOutput
from electra_tf.tasks import files
from electra_tf.tasks.files import Files
from electra_tf.tasks.kinds import base
from electra_tf.tasks.kinds.classification import label_scores
from electra_tf.tasks.labels import INDICATORS
from electra_tf.tasks.task import Examples, Kind, Task, TaskSpec, TextExample
from electra_tf.text.rows import RowEncoder, TokenRow, Tokens, encode_texts

CORRELATIONS, RETRIEVAL = ("spearman", "pearson"), ("mrr", "recall_at_1", "recall_at_10")
"""Scores of pairs with a number, and of pairs without one."""
_QUERIES = 1024  # Queries whose similarities with all candidates are in memory together.
_EXCLUDED = -1e9  # Logit of a candidate that is no negative.


class EmbeddingObjective(base.TaskObjective):
    """The cross entropy of a text's positive among all texts of the batch (InfoNCE).

    A batch has B single texts, which are read twice with different dropout (Gao et al., 2021,
    SimCSE, equation 4), pairs, or triplets with a hard negative (equation 5). Logits are cosines
    divided by the temperature. The loss is sentence-transformers' MultipleNegativesRankingLoss,
    except that equal texts and other positives of the same text are no negatives.
    """

    compares_rows = True

    def check_training(self, config: FinetuningConfig, replicas: int) -> list[str]:
        """Returns the number of negatives; `UserError` for settings that reduce them unnoticed."""
        size, columns = config.training.train_batch_size, len(self.spec.text_columns)
        steps = config.runtime.gradient_accumulation_steps
        if replicas > 1 or steps > 1:
            raise UserError(
                f"negatives come from the batch, which {replicas} device(s) times {steps} "
                "micro-batch(es) would split; give --num_gpus=1 or no --num_replicas, and no "
                "--gradient_accumulation_steps. --gradient_checkpointing also saves memory.")
        if config.training.num_folds:
            raise UserError("--num_folds doesn't score sentence embeddings; leave it out.")
        if config.training.freeze_layers == -1:
            raise UserError("--freeze_layers=-1 leaves nothing to train, as there is no head; give "
                            f"at most {config.model.num_layers - 1}.")
        if config.task.hidden_layer:
            raise UserError("task.hidden_layer=true is for heads of labels and answers; leave it "
                            "out for sentence embeddings, which have no head.")
        if size < 2:
            raise UserError("--train_batch_size=1 leaves no negatives; give 2 or more.")
        if columns == 1 and config.model.hidden_dropout == config.model.attention_dropout == 0:
            raise UserError("without pairs a text is read twice with different dropout, but both "
                            "rates are 0; give pairs, or --set model.hidden_dropout=0.1")
        negatives = max(1, columns - 1) * size - 1
        return [f"every text has {negatives:,} in-batch negatives"]

    def build_head(self, config: ModelConfig, *, seed: int) -> PoolingHead:
        """Creates the pooling, which has no weights."""
        return PoolingHead(self.config.pooling)

    def compute(self, model: TaskNetwork, inputs: RowBatch, rng: Rng,
                *, training: bool) -> LossOutput:
        """Needs the target "text", int32 [B, G], equal for equal texts.

        Details hold "embedding", float32 [B, G, H]. There is a loss in training only.
        """
        if training and inputs.ids.shape[1] == 1:
            twice = functools.partial(tf.repeat, repeats=2, axis=1)
            inputs = RowBatch(*map(twice, inputs[:3]), inputs.present,
                              {"text": twice(inputs.targets["text"])})
        tokens, rng = base.as_rows(inputs, rng if training else None)
        vectors = model.head(model.encoder(*tokens, rng), tokens.padding_mask)
        vectors = tf.reshape(vectors, [*dimensions(inputs.ids)[:2], vectors.shape[-1]])
        if not training:
            return LossOutput({}, {}, {"embedding": vectors})
        losses = contrastive_losses(vectors, inputs.targets["text"], inputs.present,
                                    self.config.temperature)
        return LossOutput({"loss": base.sum_where(losses, inputs.present)}, {},
                          {"embedding": vectors})


def contrastive_losses(vectors: tf.Tensor, texts: tf.Tensor, present: tf.Tensor,
                       temperature: float) -> tf.Tensor:
    """Returns the loss of every example, float32 [B]; cosines are divided by the temperature.

    `vectors` are float32 [B, G, H] of length 1: a text, its positive and perhaps a hard negative.
    `texts` are int32 [B, G], equal for equal texts. `present` is bool [B], False on padding.
    """
    batch_size, parts, size = vectors.shape
    # Candidates are the positives of all examples, then their hard negatives.
    candidates = tf.reshape(tf.transpose(vectors[:, 1:], [1, 0, 2]), [-1, size])
    candidate_texts = tf.reshape(tf.transpose(texts[:, 1:]), [-1])
    logits = tf.matmul(vectors[:, 0], candidates, transpose_b=True) / temperature
    same_anchor = tf.pad(texts[:, :1] == texts[:, 0], [[0, 0], [0, (parts - 2) * batch_size]])
    excluded = ((candidate_texts == texts[:, :1]) | (candidate_texts == texts[:, 1:2])
                | same_anchor | tf.logical_not(tf.tile(present, [parts - 1])))
    # -log(exp(cos(a, p) / T) / sum over candidates c that aren't excluded of exp(cos(a, c) / T)).
    positive = tf.eye(batch_size, (parts - 1) * batch_size) > 0
    return tf.nn.sparse_softmax_cross_entropy_with_logits(
        tf.range(batch_size), tf.where(excluded & ~positive, _EXCLUDED, logits))


class SentenceEmbeddings(base.TaskKind):
    """The task kind that maps a text to a vector, and a pair of texts to a cosine.

    It learns from single texts, pairs or triplets, and is scored on pairs.
    """

    kind = Kind.SENTENCE_EMBEDDINGS
    metrics = CORRELATIONS
    objective_class = EmbeddingObjective
    recipe = {"training.num_train_epochs": 1.0, "training.train_batch_size": 64}
    hugging_face = base.HuggingFaceHead(architecture="ElectraModel", layers={})
    inputs = ("text",)

    def user_task(self, name: str, user_files: Files) -> Task:
        """Returns a task of the user's files; `UserError` for damaged files or unused labels."""
        spec = self.user_spec(name, user_files)
        # Rows that train: texts, pairs or triplets of similar meaning.
        notes, paths = list[str](), ", ".join(map(str, user_files.train))
        examples = self.read(user_files.train, spec, labelled=False, notes=notes)
        for name, values in files.unused_labels(user_files.train, spec).items():
            is_positive = len(values) == 1 and INDICATORS.get(min(values).lower(), True)
            if len(spec.text_columns) > 1 and not is_positive:
                raise UserError(
                    f"{paths}: training takes every row as texts of similar meaning and reads no "
                    f"labels; keep the positive rows in a file without the column {name!r}, or "
                    f"train --task=classification or regression with --label_column={name}")
            notes.append(f"{paths}: column {name!r} is not read")
        train = [example for example in examples if not files.is_empty(example.texts, self.kind)]
        if len({example.texts for example in train}) < 2:
            raise UserError(f"{paths}: at least two different rows with texts are needed.")

        # Pairs that score: dev, or some rows that are held out.
        if user_files.dev:
            dev = self.read_dev(spec, user_files, notes)
        else:
            train, held_out, note = files.hold_out(train)
            notes.append(note)
            dev = [dataclasses.replace(example, texts=_pair(example.texts), label=None)
                   for example in held_out]
            if len(spec.text_columns) == 1:
                notes.append("dev has the halves of texts: each first half has to retrieve its "
                             "second")
        if dev[0].label is None:
            spec = dataclasses.replace(spec, metrics=RETRIEVAL)
        notes += files.notes_on_copies([
            dataclasses.replace(example, texts=example.texts[:2], label=None)
            for example in train], dev)
        test = {"test": self.read(user_files.test, _pairs(spec, user_files), labelled=False,
                                  notes=notes)} if user_files.test else {}
        return Task(spec=spec, train=train, dev={"dev": dev}, test=test,
                    notes=[*dict.fromkeys(notes)])

    def read_dev(self, spec: TaskSpec, user_files: Files, notes: list[str]) -> list[TextExample]:
        """Reads pairs, all with a number or all without one."""
        spec, paths = _pairs(spec, user_files), ", ".join(map(str, user_files.dev))
        labelled = user_files.label_column not in ("", "label") or any(
            example.label is not None for example in self.read(user_files.dev, spec,
                                                               labelled=False))
        examples = self.read(user_files.dev, spec, labelled=labelled, notes=notes)
        if not labelled:
            notes += [f"{paths}: column {name!r} is not read; --label_column={name} scores "
                      "correlations with it" for name in files.unused_labels(user_files.dev, spec)]
        if labelled and len({example.label for example in examples}) < 2:
            raise UserError(f"{paths}: all numbers in column {spec.label_column!r} are equal; "
                            "correlations need different ones.")
        if len({example.texts[1] for example in examples}) < 2:
            raise UserError(f"{paths}: at least two different second texts are needed.")
        return examples

    def select(self, spec: TaskSpec, user_files: Files) -> TaskSpec:
        """Returns a task with one column to predict, or two for cosines."""
        if len(user_files.text_columns) > 2:
            raise UserError("--text_columns takes one column to predict vectors, or two to predict "
                            f"cosines. Received: {','.join(user_files.text_columns)}")
        return user_files.select(dataclasses.replace(
            spec, text_columns=user_files.text_columns or spec.text_columns[:1]))

    def example(self, spec: TaskSpec, key: str, value: str | Sequence[str]) -> TextExample:
        """Returns a text, or a pair of texts, to predict."""
        texts = (value,) if isinstance(value, str) else tuple(value)
        if len(texts) not in (1, 2) or not all(isinstance(text, str) for text in texts):
            raise UserError("sentence embeddings are predicted for a text, or for a pair of texts "
                            f"their cosine. Received: {shown(value)}")
        return TextExample(key=key, texts=texts)

    def baseline(self, spec: TaskSpec, train: Examples, examples: Examples) -> base.Baseline:
        """Returns the expected scores of a random order."""
        ranks = np.arange(1, len(examples) + 1)
        return "a random order", (_rank_scores(ranks) if examples[0].label is None
                                  else dict.fromkeys(CORRELATIONS, 0.0))

    def encode(self, spec: TaskSpec, examples: Examples, encoder: RowEncoder,
               config: TaskConfig) -> base.Split:
        """Encodes every text of an example alone."""
        parts = len(examples[0].texts)
        if any(len(example.texts) != parts for example in examples):
            raise UserError("give single texts, or pairs of texts, but not both.")
        token_rows, lengths = encode_texts(
            [(text,) for example in examples for text in example.texts], encoder)
        numbers: dict[bytes, int] = {}
        rows = [_row(token_rows[first:first + parts], numbers, encoder.vocabulary.pad_id)
                for first in range(0, len(token_rows), parts)]
        return base.Split(rows, score=lambda results, _: score(examples, rows, results),
                          lengths=lengths, limit=encoder.max_length, what="texts")

    def formatters(self, spec: TaskSpec) -> Mapping[str, base.Formatter]:
        """Returns JSON lines, and an array of NumPy with a row for each text."""
        return {".jsonl": base.json_lines, ".npy": _npy}

    def served_scores(self, network: base.ServedNetwork, tokens: Tokens) -> base.Outputs:
        """Returns `embedding`, float32 [B, H]."""
        return {"embedding": network.head(network.hidden(tokens), tokens.padding_mask)}


def score(examples: Examples, rows: Sequence[Row], results: base.Results) -> base.Scored:
    """Returns vectors of texts, or cosines of pairs and their scores."""
    vectors = np.stack([result["embedding"] for result in results])
    predictions = vectors[:, 0]
    if vectors.shape[1] == 2:
        predictions = np.sum(vectors[:, 0] * vectors[:, 1], axis=1).astype(np.float64)
    records = [{"key": example.key, "texts": list(example.texts),
                "prediction": value if value.ndim else float(value)} | (
        {} if example.label is None else {"gold": example.label})
        for example, value in zip(examples, predictions, strict=True)]
    if vectors.shape[1] == 1:
        return base.Scored(records, {})
    labels = [example.label for example in examples]
    if all(isinstance(label, float) for label in labels):
        return base.Scored(records, label_scores(CORRELATIONS, np.array(labels), predictions))
    return base.Scored(records, retrieval_scores(
        vectors, np.stack([row.targets["text"] for row in rows])))


def retrieval_scores(vectors: np.ndarray, texts: np.ndarray) -> dict[str, float]:
    """Ranks the second texts of all pairs by their cosine with every first text.

    A candidate with an equal cosine ranks before. Candidates with the same second text, or paired
    with the same first text, do not count. `vectors` are float32 [N, 2, H] of length 1, `texts`
    int32 [N, 2].
    """
    ranks = []
    for first in range(0, len(vectors), _QUERIES):
        part = slice(first, first + _QUERIES)
        cosines = vectors[part, 0] @ vectors[:, 1].T
        matching = np.take_along_axis(cosines, np.arange(len(vectors))[part, np.newaxis], axis=1)
        is_other = np.all(texts[part, np.newaxis] != texts, axis=2)
        ranks.append(1 + np.sum((cosines >= matching) & is_other, axis=1))
    return _rank_scores(np.concatenate(ranks))


def _rank_scores(ranks: np.ndarray) -> dict[str, float]:
    return dict(zip(RETRIEVAL, (float(np.mean(values)) for values in (
        1 / ranks, ranks <= 1, ranks <= 10)), strict=True))


def _row(parts: Sequence[TokenRow], numbers: dict[bytes, int], pad_id: int) -> Row:
    """Joins the rows of an example's texts; `numbers` has a number for each text so far."""
    lengths = np.array([len(part.ids) for part in parts])
    padding_mask = np.arange(lengths.max()) < lengths[:, np.newaxis]
    ids = np.full(padding_mask.shape, pad_id, np.int32)
    ids[padding_mask] = np.concatenate([part.ids for part in parts])
    return Row(ids, np.zeros_like(ids), {"text": np.array([
        numbers.setdefault(part.ids.tobytes(), len(numbers)) for part in parts], np.int32)},
        padding_mask=padding_mask)


def _pairs(spec: TaskSpec, user_files: Files) -> TaskSpec:
    """Returns the task with the columns of pairs to score; `UserError` if they are not given."""
    in_memory = getattr(user_files.dev[0], "text_columns", ()) if user_files.dev else ()
    columns = (user_files.dev_text_columns or in_memory or user_files.text_columns
               or spec.text_columns)
    if len(columns) == 1 or len(user_files.dev_text_columns) > 2:
        raise UserError("--dev and --test take pairs of texts; name their two columns, for example "
                        "--dev_text_columns=sentence1,sentence2")
    return dataclasses.replace(user_files, text_columns=()).select(
        dataclasses.replace(spec, text_columns=columns[:2]))


def _pair(texts: Sequence[str]) -> tuple[str, ...]:
    """Returns the first two texts, or the halves of a single one."""
    if len(texts) > 1:
        return tuple(texts[:2])
    middle = len(texts[0]) // 2
    end = max(middle, texts[0].find(" ", middle))
    return texts[0][:end], texts[0][end:]


def _npy(records: Sequence[base.Record]) -> bytes:
    """Returns an array of NumPy: float32 [N, H] of vectors, [N] of cosines."""
    content = io.BytesIO()
    np.save(content, np.stack([record["prediction"] for record in records]).astype(np.float32))
    return content.getvalue()
