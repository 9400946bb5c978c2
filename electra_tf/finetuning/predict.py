"""Predicts with a fine-tuned model: rows on one CPU or on replicas, texts, and whole files."""

import collections
import concurrent.futures
import functools
import itertools
import pathlib
import sys
import time
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from electra_tf.config.finetuning import LongTexts
from electra_tf.config.runtime import Precision
from electra_tf.core import storage
from electra_tf.core.atomic_file import replacing
from electra_tf.core.errors import UserError
from electra_tf.core.storage import Path
from electra_tf.data.buckets import Row, RowBatch, make_batch, plan_in_order_of_length
from electra_tf.finetuning.results import Results
from electra_tf.finetuning.run import FinetuningRun
from electra_tf.modeling.fused import inference_mode
from electra_tf.modeling.inference import inference_encoder
from electra_tf.modeling.rng import Rng
from electra_tf.modeling.task_heads import TaskNetwork
from electra_tf.reporting.progress import duration
from electra_tf.tasks.files import Files, target_of
from electra_tf.tasks.kinds.base import Formatter, Record, RowResults, Scored, Split, json_lines
from electra_tf.tasks.task import Example, Kind
from electra_tf.training.devices import POLICIES, device_type
from electra_tf.training.strategies import NO_REWRITING

PROGRESS_SECONDS = 10.0  # Between lines of progress.
PART = 20_000
"""Examples whose predictions are computed and written together."""
BatchOutput = Mapping[str, tf.Tensor]
"""The objective's `per_example` of a batch, by name."""


class CompiledByShape:
    """A function of a batch that is compiled once per shape of its examples."""

    def __init__(self, function: Callable[[Any], Any]):
        self._function = tf.function(function, autograph=False)
        self._compiled: dict[tuple[int, ...], Callable[[Any], Any]] = {}

    def __call__(self, shape: tuple[int, ...], batch: Any) -> Any:
        """Calls the function with a batch whose ids have this shape."""
        if shape not in self._compiled:
            # Concrete functions avoid TensorFlow's warning about frequent retracing.
            self._compiled[shape] = self._function.get_concrete_function(batch)
        return self._compiled[shape](batch)


class Predictor:
    """A model that returns its objective's outputs for rows, in the run's precision."""

    def __init__(self, run: FinetuningRun, model: TaskNetwork):
        self._run, self._model = run, model
        precision = run.config.training.precision
        self._on_one_cpu = (
            run.strategy.num_replicas_in_sync == 1 and device_type(run.strategy) == "CPU")
        if self._on_one_cpu:
            dtype = tf.bfloat16 if precision is Precision.BFLOAT16 else tf.float32
            self._encoder = inference_encoder(model.encoder, dtype)
            self._traced: Callable[[RowBatch], BatchOutput] | None = None
        else:
            is_same = model.dtype_policy.name == POLICIES[precision]
            self._network = model if is_same else run.build_model(seed=0)
            self._padded_lengths: tuple[int, ...] = ()
            self._compiled = CompiledByShape(self._gathered)

    def predict(self, rows: Sequence[Row],
                progress: Callable[[float], None] = lambda done: None) -> list[RowResults]:
        """Returns the objective's `per_example` of every row, in the rows' order.

        Those with a value per token have the length of the padded row. `progress` is called after
        every batch with the fraction of tokens that are done.
        """
        lengths = np.array([max(1, row.ids.size) for row in rows])  # 0 without words.
        plan = plan_in_order_of_length(lengths, self._run.config.runtime.eval_batch_size)
        batches = (self._on_cores if self._on_one_cpu else self._on_replicas)(rows, plan)
        row_results: list[RowResults] = [{} for _ in rows]
        num_done = 0
        for indices, per_example in zip(plan, batches, strict=True):
            arrays = {name: tensor.numpy() for name, tensor in per_example.items()}
            for position, index in enumerate(indices):
                row_results[index] = {name: values[position] for name, values in arrays.items()}
            num_done += lengths[indices].sum()
            progress(num_done / lengths.sum())
        return row_results

    def _on_cores(self, rows: Sequence[Row],
                  plan: Sequence[np.ndarray]) -> Iterator[BatchOutput]:
        """Yields the outputs of batches: one graph for all lengths, a batch per core at a time."""
        self._encoder.assign(self._model.encoder)
        pad_id = self._run.text.vocabulary.pad_id

        def padded(indices: Sequence[int]) -> RowBatch:
            part = [rows[index] for index in indices]
            return tf.nest.map_structure(tf.constant, make_batch(
                part, len(part), [max(row.ids.shape[-1] for row in part)], pad_id))

        def per_example(batch: RowBatch) -> BatchOutput:
            with inference_mode():
                return self._compute(types.SimpleNamespace(
                    encoder=self._encoder, head=self._model.head), batch)

        # One traced graph, which a thread per core runs.
        cores = max(1, self._run.config.runtime.cpu_parts)
        is_disabled = tf.config.optimizer.get_experimental_options().get(NO_REWRITING, False)
        # The speed of `InferenceEncoder` depends on TensorFlow's graph rewriting.
        tf.config.optimizer.set_experimental_options({NO_REWRITING: False})
        try:
            if self._traced is None:  # For batches of any size.
                self._traced = tf.function(per_example, autograph=False).get_concrete_function(
                    tf.nest.map_structure(lambda value: tf.TensorSpec(
                        [None] * value.shape.rank, value.dtype), padded([0])))
            with concurrent.futures.ThreadPoolExecutor(cores) as pool:
                yield from pool.map(self._traced, map(padded, plan))
        finally:
            tf.config.optimizer.set_experimental_options({NO_REWRITING: is_disabled})

    def _on_replicas(self, rows: Sequence[Row],
                     plan: Sequence[np.ndarray]) -> Iterator[BatchOutput]:
        """Yields the outputs of batches of a few static shapes, which replicas share."""
        run = self._run
        if self._network is not self._model:
            self._network.set_weights(self._model.get_weights())
        replicas = run.strategy.num_replicas_in_sync
        size = -(-run.config.runtime.eval_batch_size // replicas) * replicas
        self._padded_lengths = self._padded_lengths or run.padded_lengths(rows)
        for indices in plan:
            batch = make_batch([rows[index] for index in indices], size, self._padded_lengths,
                               run.text.vocabulary.pad_id)
            yield self._compiled(batch.ids.shape, run.distributed(batch))

    def _gathered(self, batch: RowBatch) -> BatchOutput:
        strategy = self._run.strategy
        results = strategy.run(lambda part: self._compute(self._network, part), (batch,))
        return {name: strategy.gather(value, axis=0) for name, value in results.items()}

    def _compute(self, model: Any, batch: RowBatch) -> BatchOutput:
        zero = tf.constant(0, tf.int64)
        rng = Rng(seed=0, step=zero, first_example=zero)  # Draws nothing.
        return self._run.objective.compute(model, batch, rng, training=False).per_example


class TaskPredictor:
    """The model of a run's best trial, with the threshold that it predicts with."""

    def __init__(self, run: FinetuningRun):
        self._run = run
        self._predictor = Predictor(run, run.trained_model())
        # A converted model has no results; the threshold of its answers is among its settings.
        results, self._threshold = Results.load(run.model_dir), None
        if results is not None:
            self._threshold = results.threshold
        elif run.spec.kind is Kind.QUESTION_ANSWERING:
            self._threshold = run.config.task.no_answer_threshold

    def scored(self, split: Split, show: Callable[[float], None] | None = None) -> Scored:
        """Returns predictions and scores of encoded examples; `show` is `progress` by default."""
        results = self._predictor.predict(split.rows, show or progress())
        return split.score(results, self._threshold)

    def predict(self, values: Sequence[Any]) -> list[Record]:
        """Returns a prediction for each input; `UserError` if `TaskKind.example` refuses one."""
        run = self._run
        examples = [run.kind.example(run.spec, str(number), value)
                    for number, value in enumerate(values)]
        if not examples:
            return []
        split = run.encode(examples)
        if run.config.task.long_texts is not LongTexts.WINDOWS:  # Windows read all of a text.
            for note in split.notes:
                warnings.warn(note, stacklevel=3)  # The caller of the interface.
        return list(self.scored(split).records)


def progress() -> Callable[[float], None]:
    """Returns a function of the fraction done, (0, 1], that prints it to stderr every 10 s."""
    began = shown = time.monotonic()

    def show(done: float) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown >= PROGRESS_SECONDS and done < 1:
            remaining = (now - began) * (1 - done) / done
            print(f"  {100 * done:3.0f} %  ETA {duration(remaining)}", file=sys.stderr, flush=True)
            shown = now

    return show


def predict_file(run: FinetuningRun, source: str, output: str, user_files: Files, *,
                 overwrite: bool) -> None:
    """Reads examples from a file or standard input, and writes the model's predictions.

    `output` is a file, .jsonl or in a format of the kind, or "-" for standard output. `user_files`
    may select other columns than in training. Notes go to standard error. `UserError`, before the
    computation, if `output` is the input, exists without `overwrite`, or isn't writable.
    """
    # The format of the output.
    forms = {**run.kind.formatters(run.spec), ".jsonl": json_lines}
    target = None if output == storage.PIPE else storage.path(output)
    suffix = next(iter(forms)) if target is None else target.suffix
    if suffix not in forms:
        raise UserError(f"--output={target} must end in {' or '.join(forms)}, or be - for standard "
                        "output.")
    with storage.input_path(source, run.kind.stdin_suffix) as path:
        if target is not None:
            require_free(target, path, overwrite=overwrite)
        # The first reading refuses a damaged file before the computation, the second holds a part.
        read = functools.partial(
            run.kind.read_file, path, run.kind.select(run.spec, user_files), labelled=False)
        notes: list[str] = []
        known = collections.Counter(
            target_of(example) is None for example in read(notes=notes))
        for note in notes:
            print(f"note     {note}", file=sys.stderr)

        # Predictions, in parts, computed once the output is open; a file gets its name at the end.
        contents = _predicted(run, read(), known, forms[suffix], suffix)
        if target is None:
            sys.stdout.writelines(contents)
            return
        with replacing(target) as temporary, temporary.open("wb") as file:
            for content in contents:
                file.write(content if isinstance(content, bytes) else content.encode())
    print(f"{known.total():,} predictions  {output}")


def _predicted(run: FinetuningRun, examples: Iterable[Example], known: Mapping[bool, int],
               form: Formatter, suffix: str) -> Iterator[str | bytes]:
    """Yields parts of a file of predictions, so that memory holds those of one part.

    `known` counts the examples with and without labels. Answers to questions are one part, as their
    format is one object, and so are arrays; so are examples of which some have labels, as the
    columns of a table depend on them. The last line on standard error says how many texts were cut.
    """
    predictor = TaskPredictor(run)
    total, show, header, begin = sum(known.values()), progress(), "", 0
    remaining, lengths = iter(examples), []
    # A text in windows takes the memory of several.
    size = PART // 20 if run.config.task.long_texts is LongTexts.WINDOWS else PART
    if run.spec.kind is Kind.QUESTION_ANSWERING or suffix == ".npy" or len(known) > 1:
        size = total
    while part := list(itertools.islice(remaining, size)):
        split = run.encode(part)
        lengths.append(split.lengths)
        content = form(predictor.scored(split, lambda done, begin=begin, part=part: show(
            (begin + done * len(part)) / total)).records)
        yield content.removeprefix(header) if header else content
        header = content.partition("\n")[0] + "\n" if suffix == ".tsv" else ""
        begin += len(part)
    for note in split._replace(lengths=np.concatenate(lengths)).notes:
        print(f"note     {note}", file=sys.stderr, flush=True)


def require_free(target: Path, source: Path, *, overwrite: bool) -> None:
    """Raises `UserError` if `target` is the file `source`, or exists without `overwrite`."""
    if target.exists():
        if target.resolve() == source.resolve() or (
                isinstance(target, pathlib.Path) and target.samefile(source)):
            raise UserError(f"--output={target} is --input; name another file.")
        if target.is_dir() or not overwrite:
            raise UserError(f"--output={target} exists; name another file, or give --overwrite to "
                            "replace it.")
