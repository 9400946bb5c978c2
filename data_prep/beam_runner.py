"""Runs work on Apache Beam: on this machine, Prism, Flink, Spark or Dataflow.

The process that starts a job sends parts of the corpus and reads small results from files. Only
workers exchange text.
"""

import collections
import contextlib
import dataclasses
import functools
import io
import logging
import os
import socket
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.runner import create_runner

from data_prep import local_runner
from data_prep.work_units import CorpusPart, Item, Result, WordCounts
from electra_tf.core import atomic_file, storage, strict_json
from electra_tf.core.errors import UserError, shown
from electra_tf.core.storage import MIB, Path

RESULT_FILES = 64  # Number of a job's result files, and of the groups in which words are counted.
_MAX_BYTES = 1024 * MIB  # Largest file of results; 64 such files hold those of 50 million shards.
_DIRECT = "DirectRunner"
_REFUSED = "refused-"
_ANSWER_SECONDS = 20.0
"""Time limit for a job server to accept a connection; Beam itself waits for minutes."""


@dataclasses.dataclass(frozen=True)
class BeamRunner:
    """An Apache Beam runner and its options; raises `UserError` at once for an unknown option."""

    name: str
    """The value of Beam's --runner. DirectRunner is Beam's `FnApiRunner`, because Beam's own
    DirectRunner starts with a search for Prism's program."""
    arguments: tuple[str, ...]
    scratch: Path
    """A directory for this runner alone, to which workers can write; removed after each job."""

    def __post_init__(self):
        _checked_options(self.name, self.arguments)

    def run(self, parts: Iterable[CorpusPart], cut: Callable[[CorpusPart], Iterable[Item]],
            work: Callable[[Item], Result], kind: type[Result]) -> Iterator[Result]:
        """Yields the results of all items after the whole job."""
        def result_by_file(item: Item) -> Iterator[tuple[int, bytes]]:
            content = strict_json.dumps(work(item), kind)
            yield zlib.crc32(content) % RESULT_FILES, content

        return self._run_job(parts, cut, result_by_file, beam.GroupByKey(), kind)

    def add_up(self, parts: Iterable[CorpusPart], cut: Callable[[CorpusPart], Iterable[Item]],
               count: Callable[[Item], WordCounts]) -> Iterator[WordCounts]:
        """Yields sums of all counts; each word is in one of them."""
        def counts_by_file(item: Item) -> Iterable[tuple[int, WordCounts]]:
            groups: dict[int, WordCounts] = collections.defaultdict(collections.Counter)
            # A word's hash decides its file, so that all its counts meet there.
            for word, number in count(item).items():
                groups[zlib.crc32(word) % RESULT_FILES][word] = number
            return groups.items()

        add_up = beam.CombinePerKey(_sum) | beam.MapTuple(
            lambda file, counts: (file, [strict_json.dumps(counts, WordCounts)]))
        return self._run_job(parts, cut, counts_by_file, add_up, WordCounts)

    def _run_job(self, parts: Iterable[CorpusPart], cut: Callable[[CorpusPart], Iterable[Item]],
                 work: Callable[[Item], Iterable[tuple[int, Any]]], gather: beam.PTransform,
                 kind: type[Result]) -> Iterator[Result]:
        """Runs a job that applies `work` to all items; yields the results, gathered by file."""
        # A new directory, to which workers write results and the refusals of the user's files.
        options = _checked_options(self.name, self.arguments)
        storage.remove_tree(self.scratch)
        # Workers of a killed job may still write to its directory, so that each job has a new one.
        scratch = self.scratch / os.urandom(8).hex()
        atomic_file.make_directory(scratch)
        reporting = functools.partial(functools.partial, _reporting, scratch)
        try:
            with _quiet(), contextlib.ExitStack() as stack:
                stack.push(functools.partial(_raise_refusal, scratch))
                try:
                    _require_job_server(options)
                    runner = FnApiRunner() if self.name == _DIRECT else create_runner(self.name)
                    pipeline = beam.Pipeline(runner=runner, options=options)
                    # Parts of the corpus -> items, on all workers -> results by file.
                    (pipeline
                     | "Parts" >> beam.Create(list(parts))
                     | "Cut" >> beam.FlatMap(reporting(cut))
                     | "Spread" >> beam.Reshuffle()
                     | "Work" >> beam.FlatMap(reporting(work))
                     | "Gather" >> gather
                     | "Write" >> beam.FlatMap(reporting(_write_results, scratch)))
                    job = pipeline.run()
                except KeyboardInterrupt as error:
                    # Beam wraps an interrupt of a worker's function.
                    while isinstance(error.__context__, KeyboardInterrupt):
                        error = error.__context__
                    raise error from None
                except (OSError, ValueError, ImportError, RuntimeError) as error:
                    if self.name == _DIRECT:  # Its `run` also does the work.
                        raise
                    raise UserError(f"--runner={self.name} can't start the job: "
                                    f"{error or type(error).__name__}; see "
                                    "docs/how_to/data_cluster.md for the options that it needs "
                                    "(--beam_options).") from error
                try:
                    job.wait_until_finish()
                except KeyboardInterrupt:
                    job.cancel()
                    raise
            # The results, file by file.
            for path in sorted(scratch.glob("results-*")):
                yield from strict_json.read(path, list[kind], max_bytes=_MAX_BYTES)
        finally:
            storage.remove_tree(self.scratch)


def _raise_refusal(scratch: Path, _kind: object, error: BaseException | None,
                   _traceback: object) -> None:
    """Raises the `UserError` that a worker wrote to a file instead of a job's own error."""
    if isinstance(error, Exception):
        for path in scratch.glob(f"{_REFUSED}*"):
            raise UserError(path.read_text(encoding="utf-8")) from None


def _checked_options(name: str, arguments: tuple[str, ...]) -> PipelineOptions:
    if arguments and not arguments[0].startswith("--"):
        raise UserError(f"--beam_options must be written --name=value. Received: "
                        f"{shown(arguments[0])}")
    # Beam's parser reports wrong values on stderr, and ends the process.
    options = PipelineOptions([*arguments, f"--runner={name}"])
    try:
        with _quiet() as messages:
            known = options.get_all_options()
            unknown = options.get_all_options(retain_unknown_options=True).keys() - known.keys()
    except SystemExit:
        problem = messages.getvalue().strip().rpartition("error: ")[2]
        raise UserError(f"--beam_options: {problem}.") from None
    if unknown:
        names = ", ".join(f"--{option}" for option in sorted(unknown))
        if name in (_DIRECT, "DataflowRunner"):
            raise UserError(f"--beam_options: Beam {beam.__version__} has no {names}.")
        print(f"warning: Beam has no {names} of --beam_options; a job server may have "
              "them.", file=sys.stderr)
    if name == _DIRECT and known["direct_running_mode"] != "in_memory":
        raise UserError("--beam_options: DirectRunner works with --direct_running_mode=in_memory "
                        "only; for several processes leave out --runner and give --num_workers.")
    return options


def _require_job_server(options: PipelineOptions) -> None:
    """Raises `OSError` if no server listens at --job_endpoint; Beam starts one without the flag."""
    endpoint = options.get_all_options()["job_endpoint"]
    if endpoint and endpoint != "embed":
        host, _, port = endpoint.rpartition(":")
        try:
            socket.create_connection((host, int(port)), _ANSWER_SECONDS).close()
        except (OSError, ValueError) as error:
            raise ConnectionError(f"no job server answers at {endpoint} ({error})") from error


@contextlib.contextmanager
def _quiet() -> Iterator[io.StringIO]:
    """Yields Beam's output instead of printing it; a job's exception states the cause."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with contextlib.redirect_stderr(io.StringIO()) as output:
            yield output
    finally:
        logging.disable(before)


def _reporting(scratch: Path, function: Callable[..., Iterable], *arguments: Any) -> Iterator:
    """Yields a function's items; writes its `UserError` to a file that the waiting process reads.

    All functions of a job run in this one.
    """
    local_runner.quiet_worker()
    try:
        yield from function(*arguments)
    except UserError as error:
        with contextlib.suppress(OSError, UserError):
            (scratch / f"{_REFUSED}{os.urandom(8).hex()}").write_bytes(str(error).encode())
        raise


def _write_results(scratch: Path, results: tuple[int, Iterable[bytes]]) -> tuple[()]:
    file, contents = results
    atomic_file.write_atomically(
        scratch / f"results-{file:02d}", b"[%b]" % b",\n".join(sorted(contents)))
    return ()


def _sum(counts: Iterable[WordCounts]) -> WordCounts:
    """Adds up counts: those of each worker first, then those of all workers."""
    total: WordCounts = collections.Counter()
    for summand in counts:
        total.update(summand)
    return total
