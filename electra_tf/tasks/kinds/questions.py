"""Extractive QA: the answer to a question is a span of a context, which may lack an answer."""

import json
from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from electra_tf.config.finetuning import TaskConfig
from electra_tf.config.model import ModelConfig
from electra_tf.core.errors import UserError, shown
from electra_tf.core.storage import Path
from electra_tf.data.buckets import Row, RowBatch
from electra_tf.modeling import inference
from electra_tf.modeling.fused import dimensions
from electra_tf.modeling.rng import Rng
from electra_tf.modeling.task_heads import QuestionHead, SpanBeams, TaskNetwork, answer_positions
from electra_tf.objectives.objective import LossOutput
from electra_tf.tasks.kinds import answers, base
from electra_tf.tasks.kinds.answers import Contexts, Questions
from electra_tf.tasks.question_files import read_questions
from electra_tf.tasks.task import Examples, Kind, QuestionExample, TaskSpec
from electra_tf.text.rows import RowEncoder, Tokens, Windows, encode_windows, token_rows

CHUNK = 1000
"""Number of questions that one call encodes; those about one context share its pieces."""
SERVED_CHUNK = 8
"""Number of windows that an exported graph computes together. The head's memory for each grows with
L times the beam size."""
_BEAM_SPECS = SpanBeams(
    tf.TensorSpec([None, None], tf.float32), tf.TensorSpec([None, None], tf.int32),
    tf.TensorSpec([None, None, None], tf.float32), tf.TensorSpec([None, None, None], tf.int32),
    tf.TensorSpec([None], tf.float32))


class QuestionObjective(base.TaskObjective):
    """The mean cross entropy of start and end, and the weighted answerability loss."""

    hidden_layer = False

    def build_head(self, config: ModelConfig, *, seed: int) -> QuestionHead:
        """Creates a `QuestionHead`."""
        return QuestionHead(
            base.HEAD_NAME, config.hidden_size, conditioned=self.config.ends_given_starts,
            answerability=self.config.answerability, seed=seed,
            hidden_layer=self.config.hidden_layer and config.is_modern)

    def compute(self, model: TaskNetwork, inputs: RowBatch, rng: Rng,
                *, training: bool) -> LossOutput:
        """Needs "start", "end", int32 [B], and "impossible", float32 [B].

        Outside of training the loss is 0, and `per_example` has the fields of `SpanBeams`.
        """
        hidden = model.encoder(inputs.ids, inputs.segment_ids, inputs.padding_mask,
                               rng if training else None)
        allowed = answer_positions(inputs.segment_ids, inputs.padding_mask)
        if not training:
            return LossOutput({"loss": tf.zeros([])}, {}, _beams(
                model.head, hidden, allowed, self.config))
        targets = inputs.targets
        logits = model.head(hidden, allowed, targets["start"])
        cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits
        losses = (cross_entropy(targets["start"], logits.start)
                  + cross_entropy(targets["end"], logits.end)) / 2.0
        if logits.impossible is not None:
            losses += self.config.answerability_weight * tf.nn.sigmoid_cross_entropy_with_logits(
                targets["impossible"], logits.impossible)
        return LossOutput({"loss": base.sum_where(losses, inputs.present)}, {}, {})


class QuestionAnswering(base.TaskKind):
    """The task kind that answers questions by spans of a context."""

    kind = Kind.QUESTION_ANSWERING
    metrics = ("f1", "exact_match")
    objective_class = QuestionObjective
    recipe = {"training.num_train_epochs": 2.0, "task.max_seq_length": 512}
    stdin_suffix = ".json"
    hugging_face = base.HuggingFaceHead(
        architecture="ElectraForQuestionAnswering", layers={"qa_outputs": ("dense", "dense_1")},
        settings={"task.ends_given_starts": False, "task.answerability": False})
    inputs = ("question", "context")

    def read_file(self, path: Path, spec: TaskSpec, *, labelled: bool,
                  notes: list[str] | None = None) -> list[QuestionExample]:
        """Reads SQuAD's or MRQA's format; see `read_questions`."""
        return read_questions(path, labelled=labelled, notes=notes)

    def example(self, spec: TaskSpec, key: str, value: tuple[str, str]) -> QuestionExample:
        """Returns a question to predict from a question and its context."""
        if isinstance(value, str) or [type(text) for text in value] != [str, str]:
            raise UserError(f"the task {spec.name} reads pairs of a question and its context. "
                            f"Received: {shown(value)}")
        return QuestionExample(key=key, question=value[0], context=value[1])

    def baseline(self, spec: TaskSpec, train: Examples, examples: Examples) -> base.Baseline:
        """Predicts that no question has an answer."""
        return "never an answer", answers.answer_scores(
            {example.key: example.gold for example in examples},
            {example.key: "" for example in examples})

    def training_examples(self, examples: Examples, notes: list[str]) -> Examples:
        """Leaves out questions without an answer at its offset; `UserError` if none is left."""
        usable = [example for example in examples if example.span or example.is_impossible]
        lost = [example.key for example in examples if not (example.span or example.is_impossible)]
        if not usable:
            raise UserError("--train: no answer is at its offset; correct the offsets.")
        if lost:
            notes.append(f"train: {len(lost):,} questions such as {lost[0]!r} have no answer at "
                         "its offset in the context and are left out")
        return usable

    def encode(self, spec: TaskSpec, examples: Examples, encoder: RowEncoder,
               config: TaskConfig) -> base.Split:
        """Encodes questions; see `encode`."""
        parts = [encode(examples[begin:begin + CHUNK], encoder, config)
                 for begin in range(0, len(examples), CHUNK)]
        return base.Split(
            [row for part in parts for row in part.rows],
            score=lambda results, threshold: answers.score(
                examples, parts, results, config, threshold),
            lengths=np.array([length for part in parts for length in part.query_lengths], np.int32),
            limit=config.max_query_length, what="questions", setting="task.max_query_length")

    def objective(self, spec: TaskSpec, config: TaskConfig) -> base.TaskObjective:
        """Returns the objective; `UserError` if a question can leave no room for a context."""
        max_length = config.max_seq_length - 4
        if config.max_query_length > max_length:
            raise UserError(
                f"task.max_query_length={config.max_query_length} leaves no room for a context in "
                f"--max_seq_length={config.max_seq_length}; it must be at most {max_length}.")
        return super().objective(spec, config)

    def formatters(self, spec: TaskSpec) -> Mapping[str, base.Formatter]:
        """Returns the format of SQuAD: a JSON object with an answer for each question's id."""
        return {".json": lambda records: json.dumps(
            {record["key"]: record["prediction"] for record in records},
            ensure_ascii=False, indent=1) + "\n"}

    def served_answer(self, network: base.ServedNetwork, *columns: tf.Tensor) -> base.Outputs:
        """Answers questions about contexts, [B] each; see docs/reference/signatures_and_rest.md.

        `answer` is "" if the logit of "no answer" is above the threshold of the settings.
        """
        config = network.config
        tokens, context_windows, contexts, _ = read_windows(
            network.row_encoder, *columns, tf.range(tf.size(columns[1])), config)

        def all_beams(*part: tf.Tensor) -> SpanBeams:  # Without a head for it, the logit is 0.
            fields = self.served_scores(network, Tokens(*part))
            return SpanBeams(**({"impossible": tf.zeros(tf.shape(part[0])[:1])} | fields))

        beams = inference.map_in_chunks(all_beams, tokens, _BEAM_SPECS, max_rows=SERVED_CHUNK)
        best = answers.best_answers(contexts, context_windows, beams,
                                    max_pieces=config.max_answer_length)
        outputs = {"answer": best.text, "start": best.start, "end": best.end, "score": best.score}
        if network.head.impossible is None:
            return outputs
        is_answered = best.impossible <= config.no_answer_threshold
        outputs["answer"] = tf.where(is_answered, best.text, "")
        outputs |= {name: tf.where(is_answered, outputs[name], 0) for name in ("start", "end")}
        return outputs | {"no_answer_probability": tf.sigmoid(best.impossible)}

    def served_scores(self, network: base.ServedNetwork, tokens: Tokens) -> base.Outputs:
        """Returns the fields of `SpanBeams`."""
        return _beams(network.head, network.hidden(tokens), answer_positions(
            tokens.segment_ids, tokens.padding_mask), network.config)


def encode(examples: Examples, encoder: RowEncoder, config: TaskConfig) -> Questions:
    """Encodes questions in one call, as [CLS] question [SEP] part of the context [SEP]."""
    # Windows of every context, of which several questions can be.
    context_ids = {text: number for number, text in enumerate(
        dict.fromkeys(example.context for example in examples))}
    tokens, context_windows, contexts, query_lengths = read_windows(
        encoder, tf.constant([example.question for example in examples]),
        tf.constant(list(context_ids)),
        tf.constant([context_ids[example.context] for example in examples]), config)
    starts, ends = (np.split(offsets.flat_values.numpy(), offsets.row_splits.numpy()[1:-1])
                    for offsets in (contexts.starts, contexts.ends))
    piece_spans = []  # The first and the last piece with characters of the answer, if any.
    for example in examples:
        touched = np.zeros(0)
        if example.span is not None:
            start, end = (len(example.context[:offset].encode()) for offset in example.span)
            context = context_ids[example.context]
            touched = np.flatnonzero((ends[context] > start) & (starts[context] < end))
        piece_spans.append((int(touched[0]), int(touched[-1])) if touched.size else None)

    # A row per window, with the answer's pieces if it is inside, otherwise [CLS].
    rows = []
    for row, number, first, size, position in zip(
            token_rows(tokens), *(part.numpy() for part in context_windows[:4]), strict=True):
        span = piece_spans[number]
        inside = span is not None and first <= span[0] and span[1] < first + size
        start, last = (piece - first + position for piece in span) if inside else (0, 0)  # [CLS].
        impossible = not inside if config.answerable_by_window else examples[number].is_impossible
        rows.append(Row(*row, {"start": np.int32(start), "end": np.int32(last),
                               "impossible": np.float32(impossible)}))
    return Questions(rows, context_windows, contexts, query_lengths.numpy())


def read_windows(encoder: RowEncoder, questions: tf.Tensor, texts: tf.Tensor, text_of: tf.Tensor,
                 config: TaskConfig) -> tuple[Tokens, Windows, Contexts, tf.Tensor]:
    """Returns rows and windows of B questions, their C contexts, and lengths of questions.

    `text_of`, int32 [B], is the index of each question's context. Lengths are int64 [B], in tokens
    before the cut to `max_query_length`.
    """
    pieces = encoder.tokenizer.tokenize_with_offsets(texts)
    queries = encoder.tokenizer.tokenize(questions)
    return *encode_windows(
        encoder, queries[:, :config.max_query_length], pieces.ids, text_of,
        stride=config.doc_stride or 128), Contexts(
            texts, pieces.starts, pieces.ends, text_of), queries.row_lengths()


def _beams(head: QuestionHead, hidden: tf.Tensor, allowed: tf.Tensor,
           config: TaskConfig) -> base.Outputs:
    """Returns the fields of `SpanBeams`, without `impossible` if the head does not score it."""
    length = dimensions(allowed)[1]  # A number, or a tensor in a function of any length.
    minimum = min if isinstance(length, int) else tf.minimum
    beams = head.beams(hidden, allowed, minimum(config.beam_size, length))._asdict()
    return {name: part for name, part in beams.items() if part is not None}
