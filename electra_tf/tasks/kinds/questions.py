"""Extractive QA: questions about a context that may or may not contain the answer."""

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import tensorflow as tf

from electra_tf.config.finetuning import TaskConfig
from electra_tf.config.model import ModelConfig
from electra_tf.data.buckets import Row, RowBatch
from electra_tf.modeling import chunks
from electra_tf.modeling.fused import dimensions
from electra_tf.modeling.randomness import Randomness
from electra_tf.modeling.task_heads import QuestionHead, SpanBeams, TaskModel, answer_positions
from electra_tf.objectives.objective import Outcome
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path
from electra_tf.tasks import files
from electra_tf.tasks.encoding import token_rows
from electra_tf.tasks.examples import Answer, Kind, QuestionExample
from electra_tf.tasks.files import Files, Paths
from electra_tf.tasks.kinds import answers
from electra_tf.tasks.kinds.answers import Contexts, Questions
from electra_tf.tasks.kinds.kind import (
    HEAD,
    HuggingFaceHead,
    Outputs,
    Record,
    ServedNetwork,
    Split,
    TaskKind,
    TaskObjective,
    sum_where,
)
from electra_tf.tasks.question_files import read_questions
from electra_tf.tasks.task import TaskSpec
from electra_tf.text import windows
from electra_tf.text.rows import RowEncoder, Tokens
from electra_tf.text.tokenizer import Pieces
from electra_tf.text.windows import Windows

CHUNK = 1000
"""Questions that one call encodes; questions about the same context share its pieces."""
SERVED_CHUNK = 8
"""Windows that an exported graph computes together: the head's memory grows with L times the beam
for each."""
NO_ANSWER = 0
"""Position of [CLS], where questions without an answer start and end."""


class QuestionAnswering(TaskKind):
    """The kind of task that answers questions by spans of a context."""

    kind = Kind.QUESTION_ANSWERING
    metrics = ("f1", "exact_match")
    recipe = {"training.num_train_epochs": 2.0, "task.max_seq_length": 512}
    suffix = piped = ".json"
    hugging_face = HuggingFaceHead(
        architecture="ElectraForQuestionAnswering", layers={"qa_outputs": ("dense", "dense_1")},
        settings={"task.ends_given_starts": False, "task.answerability": False})

    def read(self, given: Paths, spec: TaskSpec, *,
             labelled: bool) -> Sequence[QuestionExample]:
        """Reads SQuAD's or MRQA's format; see `read_questions`."""
        return files.read_all(
            given, lambda path: read_questions(path, labelled=labelled).examples)

    def example(self, spec: TaskSpec, key: str, given: tuple[str, str]) -> QuestionExample:
        """Returns a question to predict, given with its context."""
        if isinstance(given, str) or [type(text) for text in given] != [str, str]:
            raise UserError(f"the task {spec.name} reads pairs of a question and its context. "
                            f"Received: {shown(given)}")
        return QuestionExample(key=key, question=given[0], context=given[1])

    def baseline(self, spec: TaskSpec, train: Sequence[QuestionExample],
                 examples: Sequence[QuestionExample]) -> tuple[str, Mapping[str, float]]:
        """Predicts that no question has an answer."""
        return "never an answer", answers.answer_scores(
            {one.key: one.gold for one in examples}, {one.key: "" for one in examples})

    def own_split(self, split: str, given: Paths,
                  spec: TaskSpec) -> tuple[Sequence[QuestionExample], list[str]]:
        """Returns questions without misplaced answers, and a note on these."""
        notes = []

        def examples(path: Path) -> Sequence[QuestionExample]:
            part = read_questions(path)
            if part.misplaced:
                notes.append(f"{split}: answers that don't stand at their offset are left out, in "
                             f"{len(part.misplaced)} questions such as {part.misplaced[0]!r}")
            return [one for one in part.examples
                    if split != "train" or one.answers or one.is_impossible]

        found = files.read_all(given, examples)
        if not found:
            raise UserError(f"{files.shown_paths(given)}: no answer stands at its offset; there is "
                            f"nothing to {'learn' if split == 'train' else 'score'}.")
        return found, notes

    def fitted(self, spec: TaskSpec, own: Files, train: Sequence[QuestionExample],
               dev: Sequence[QuestionExample]) -> TaskSpec:
        """Returns the task, which has neither labels nor columns."""
        return self.spec(spec.name)

    def encode(self, spec: TaskSpec, examples: Sequence[QuestionExample], encoder: RowEncoder,
               config: TaskConfig) -> Split:
        """Encodes questions; see `encode`."""
        questions = encode(examples, encoder, stride=config.doc_stride,
                           max_query=config.max_query_length,
                           by_window=config.answerable_by_window)
        return Split(rows=questions.rows, score=lambda results, threshold: answers.score(
            examples, questions, results, config, threshold))

    def objective(self, spec: TaskSpec, config: TaskConfig) -> "QuestionObjective":
        """Returns the loss; `UserError` if a question can leave no room for a context."""
        longest = config.max_seq_length - 4
        if config.max_query_length > longest:
            raise UserError(
                f"task.max_query_length={config.max_query_length} leaves no room for a "
                f"context in --max_seq_length={config.max_seq_length}; at most {longest} do.")
        return QuestionObjective(
            conditioned=config.ends_given_starts, answerability=config.answerability,
            answerability_weight=config.answerability_weight, beam_size=config.beam_size)

    def written(self, spec: TaskSpec, records: Sequence[Record]) -> str:
        """Returns SQuAD's JSON object from question to answer."""
        return json.dumps({record["key"]: record["prediction"] for record in records},
                          ensure_ascii=False, indent=1) + "\n"

    def served_inputs(self, spec: TaskSpec) -> tuple[str, ...]:
        """Returns the names of the question and its context."""
        return ("question", "context")

    def served_answer(self, network: ServedNetwork, *columns: tf.Tensor) -> Outputs:
        """Answers questions about contexts, [B] each.

        `answer` is "" if the logit of "no answer" is above the threshold found in training. `start`
        and `end`, int32, are characters of the context. `score`, float32, is the probability of the
        span in its window. `no_answer_probability`, float32, needs a network trained to tell.
        """
        config = network.config
        asked, contexts = columns
        numbers = tf.range(tf.size(contexts))
        tokens, found_windows, pieces = read_windows(
            network.texts, asked, contexts, numbers, stride=config.doc_stride,
            max_query=config.max_query_length)
        beams = in_chunks(lambda part: _beams(network, part), tokens)
        found = answers.best_answers(
            Contexts(contexts, pieces.starts, pieces.ends, numbers), found_windows, beams,
            max_pieces=config.max_answer_length)
        outputs = {"answer": found.text, "start": found.start, "end": found.end,
                   "score": found.score}
        if network.head.impossible is None:
            return outputs
        if network.threshold is not None:
            given = found.impossible <= network.threshold
            outputs["answer"] = tf.where(given, found.text, "")
            outputs |= {name: tf.where(given, outputs[name], 0) for name in ("start", "end")}
        return outputs | {"no_answer_probability": tf.sigmoid(found.impossible)}

    def served_scores(self, network: ServedNetwork, tokens: Tokens) -> Outputs:
        """Returns the fields of `SpanBeams`."""
        return {name: value for name, value in _beams(network, tokens)._asdict().items()
                if name != "impossible" or network.head.impossible is not None}


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuestionObjective(TaskObjective):
    """The mean cross entropy of start and end, and the weighted answerability loss."""

    conditioned: bool = True
    """Ends are scored given the start (`QuestionHead`)."""
    answerability: bool = True
    answerability_weight: float = 0.5
    beam_size: int = 20
    """Starts, and ends for each, that evaluation looks at."""

    def build_head(self, config: ModelConfig, *, seed: int, policy: str) -> QuestionHead:
        """Creates a `QuestionHead`."""
        return QuestionHead(HEAD, config.hidden_size, conditioned=self.conditioned,
                            answerability=self.answerability, seed=seed, policy=policy)

    def compute(self, model: TaskModel, inputs: RowBatch, randomness: Randomness,
                *, training: bool) -> Outcome:
        """Needs "start", "end", int32 [B], and "impossible", float32 [B].

        Details are the fields of `SpanBeams`, outside of training only; there is no loss then.
        """
        hidden = model.encoder(inputs.ids, inputs.segment_ids, inputs.valid,
                               randomness if training else None)
        allowed = answer_positions(inputs.segment_ids, inputs.valid)
        if not training:
            length = dimensions(allowed)[1]
            size = (min if isinstance(length, int) else tf.minimum)(self.beam_size, length)
            beams = model.head.beams(hidden, allowed, size)._asdict()
            return Outcome({"loss": tf.zeros([])}, {}, {
                name: part for name, part in beams.items() if part is not None})
        targets = inputs.targets
        logits = model.head(hidden, allowed, targets["start"])
        losses = (_cross_entropy(targets["start"], logits.start)
                  + _cross_entropy(targets["end"], logits.end)) / 2.0
        if logits.impossible is not None:
            losses += self.answerability_weight * tf.nn.sigmoid_cross_entropy_with_logits(
                targets["impossible"], logits.impossible)
        return Outcome({"loss": sum_where(losses, inputs.present)}, {}, {})


def encode(examples: Sequence[QuestionExample], encoder: RowEncoder, *, stride: int,
           max_query: int, by_window: bool = True) -> Questions:
    """Encodes questions as [CLS] question [SEP] part of the context [SEP].

    The first answer of each is the training target. Windows begin `stride` pieces apart;
    `max_query` pieces of a question are kept. With `by_window` a window without the answer is
    "impossible"; otherwise its question decides.
    """
    rows: list[Row] = []
    parts: list[Windows] = []
    contexts: list[Contexts] = []
    for begin in range(0, len(examples), CHUNK):
        chunk = examples[begin:begin + CHUNK]
        distinct = {text: number for number, text in enumerate(
            dict.fromkeys(example.context for example in chunk))}
        texts = tf.constant(list(distinct))
        context_of = tf.constant([distinct[example.context] for example in chunk])
        tokens, found, pieces = read_windows(
            encoder, tf.constant([one.question for one in chunk]), texts, context_of,
            stride=stride, max_query=max_query)
        found = Windows(*(part.numpy() for part in found))
        places = [np.split(part.flat_values.numpy(), part.row_splits.numpy()[1:-1])
                  for part in (pieces.starts, pieces.ends)]
        answered = [_piece_span(one.answers[0], one.context, *(
            part[distinct[one.context]] for part in places)) if one.answers else None
            for one in chunk]
        for row, number, first, size, position in zip(
                token_rows(tokens), found.example, found.first, found.sizes, found.position,
                strict=True):
            span = answered[number]
            inside = span is not None and first <= span[0] and span[1] < first + size
            start, last = ((piece - first + position for piece in span) if inside
                           else (NO_ANSWER, NO_ANSWER))
            rows.append(Row(*row, {
                "start": np.int32(start), "end": np.int32(last), "impossible": np.float32(
                    not inside if by_window else chunk[number].is_impossible)}))
        parts.append(found._replace(example=found.example + begin))
        contexts.append(Contexts(texts, pieces.starts, pieces.ends,
                                 context_of + sum(len(part.texts) for part in contexts)))
    return Questions(
        rows=rows, windows=Windows(*map(np.concatenate, zip(*parts, strict=True))),
        contexts=Contexts(*(tf.concat(part, axis=0) for part in zip(*contexts, strict=True))))


def read_windows(encoder: RowEncoder, questions: tf.Tensor, contexts: tf.Tensor,
                 context_of: tf.Tensor, *, stride: int,
                 max_query: int) -> tuple[Tokens, Windows, Pieces]:
    """Returns rows and windows of questions, [B], and pieces of contexts, [C]; see `Contexts`."""
    pieces = encoder.tokenizer.tokenize_with_words(contexts)
    queries = encoder.tokenizer.tokenize(questions)[:, :max_query]
    return *windows.encode(encoder, queries, pieces.ids, context_of, stride=stride), pieces


def in_chunks(compute: Callable[[Tokens], SpanBeams], tokens: Tokens) -> SpanBeams:
    """Calls a function on a few windows at a time; it returns all fields."""
    return chunks.in_chunks(
        lambda *part: compute(Tokens(*part)), tokens, tf.constant(SERVED_CHUNK), SpanBeams(
            tf.TensorSpec([None, None], tf.float32), tf.TensorSpec([None, None], tf.int32),
            tf.TensorSpec([None, None, None], tf.float32),
            tf.TensorSpec([None, None, None], tf.int32), tf.TensorSpec([None], tf.float32)))


def _piece_span(answer: Answer, text: str, starts: np.ndarray,
                ends: np.ndarray) -> tuple[int, int] | None:
    """Returns the first and the last piece of the words that an answer touches."""
    start = len(text[:answer.start].encode())
    end = start + len(answer.text.encode())
    touched = np.flatnonzero((ends > start) & (starts < end))
    return (int(touched[0]), int(touched[-1])) if touched.size else None


def _cross_entropy(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)


def _beams(network: ServedNetwork, tokens: Tokens) -> SpanBeams:
    """Returns all fields; `impossible` is 0 without a head for it."""
    allowed = answer_positions(tokens.segment_ids, tokens.valid)
    size = tf.minimum(network.config.beam_size, tf.shape(allowed)[1])
    beams = network.head.beams(network.hidden(tokens), allowed, size)
    if beams.impossible is not None:
        return beams
    return beams._replace(impossible=tf.zeros(tf.shape(allowed)[:1]))
