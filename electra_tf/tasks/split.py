"""Examples as rows of token ids, and the way back from what a network says of these rows."""

import dataclasses
import functools
from collections.abc import Callable, Sequence

from electra_tf.config.finetuning import TaskConfig
from electra_tf.input.buckets import Row
from electra_tf.tasks.answers import encode_questions
from electra_tf.tasks.encoding import ExampleEncoder
from electra_tf.tasks.examples import Example, Kind, TextExample
from electra_tf.tasks.scoring import (
    RowResults,
    Scored,
    score_answers,
    score_classes,
    score_numbers,
    score_tags,
)
from electra_tf.tasks.task import TaskSpec
from electra_tf.text.tokenizer import Tokenizer
from electra_tf.text.vocabulary import Vocabulary

Score = Callable[[Sequence[RowResults], float | None], Scored]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Split:
    """Encoded examples."""

    rows: list[Row]
    score: Score
    """Maps what a network says of every row, and the threshold of "no answer" (None searches
    one), to predictions and scores."""


def encode(spec: TaskSpec, examples: Sequence[Example], tokenizer: Tokenizer,
           vocabulary: Vocabulary, config: TaskConfig) -> Split:
    """Encodes examples as their task wants it."""
    if spec.kind is Kind.QUESTION_ANSWERING:
        questions = encode_questions(
            examples, tokenizer, vocabulary, max_length=config.max_seq_length,
            stride=config.doc_stride, max_query=config.max_query_length,
            by_window=config.answerable_by_window)
        return Split(rows=questions.rows, score=lambda results, threshold: score_answers(
            examples, questions, results, config, threshold))
    encoder = ExampleEncoder(tokenizer, vocabulary, config.max_seq_length)
    if spec.kind is Kind.TAGGING:
        rows, origins = encoder.tagged(examples, spec.labels)
        score = functools.partial(score_tags, examples, origins=origins, tags=spec.labels)
    elif spec.kind is Kind.CLASSIFICATION:
        rows = encoder.texts(examples, spec.labels)
        score = functools.partial(
            score_classes, examples, labels=spec.labels, words=spec.label_words,
            metrics=spec.metrics)
    else:
        rows = encoder.texts(examples)
        score = functools.partial(score_numbers, examples, metrics=spec.metrics)
    return Split(rows=rows, score=lambda results, _threshold: score(results=results))


def swapped(examples: Sequence[Example]) -> list[TextExample]:
    """Returns pairs in both orders: every pair, then all of them turned round."""
    return [*examples, *(dataclasses.replace(example, texts=example.texts[::-1])
                         for example in examples)]
