"""Runs work on Apache Beam: on this machine, Prism, Flink, Spark or Dataflow.

The process that starts a job sends pieces of the corpus and reads small results from files. Only
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

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.runner import create_runner

from data_prep import local_runner
from data_prep.work_units import Item, Piece, Result, Words
from electra_tf.platform import atomic_file, storage, strict_json
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import MIB, Path

PARTS = 64
"""Number of a job's result files, and of the groups in which words are counted."""
_MOST_BYTES = 1024 * MIB
"""Largest file of results; 64 such files hold those of 50 million shards."""
_DIRECT, _DATAFLOW = "DirectRunner", "DataflowRunner"
_REFUSED = "refused-"
_CANNOT_START = (OSError, ValueError, ImportError, RuntimeError)
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

    def run(self, pieces: Iterable[Piece], cut: Callable[[Piece], Iterable[Item]],
            work: Callable[[Item], Result], kind: type[Result]) -> Iterator[Result]:
        """Yields the results of all items after the whole job."""
        with self._place() as place:
            self._finish(place, lambda units: (
                units
                | "Work" >> beam.Map(functools.partial(_worked, place, work, kind))
                | "Gather" >> beam.GroupByKey()), pieces, cut)
            yield from _results(place, kind)

    def add_up(self, pieces: Iterable[Piece], cut: Callable[[Piece], Iterable[Item]],
               count: Callable[[Item], Words]) -> Iterator[Words]:
        """Yields sums of all counts; each word is in one of them."""
        with self._place() as place:
            self._finish(place, lambda units: (
                units
                | "Count" >> beam.FlatMap(functools.partial(_counted, place, count))
                | "Add up" >> beam.CombinePerKey(_sum)
                | "As JSON" >> beam.MapTuple(_sums)), pieces, cut)
            for found in _results(place, dict[str, int]):
                yield Words({word.encode(): number for word, number in found.items()})

    @contextlib.contextmanager
    def _place(self) -> Iterator[Path]:
        """Yields a new directory for a job: workers of a killed job may still write to the old."""
        storage.remove_tree(self.scratch)
        place = self.scratch / os.urandom(8).hex()
        atomic_file.make_directory(place)
        try:
            yield place
        finally:
            storage.remove_tree(self.scratch)

    def _finish(self, place: Path, rest: Callable, pieces: Iterable[Piece],
                cut: Callable[[Piece], Iterable]) -> None:
        """Runs a job, which applies `rest` to all items and writes the results by part."""
        options = _checked_options(self.name, self.arguments)
        with _quiet(), contextlib.ExitStack() as exits:
            exits.push(functools.partial(_raise_refusal, place))
            try:
                _require_job_server(options)
                runner = FnApiRunner() if self.name == _DIRECT else create_runner(self.name)
                pipeline = beam.Pipeline(runner=runner, options=options)
                (rest(pipeline
                      | "Pieces" >> beam.Create(list(pieces))
                      | "Cut" >> beam.FlatMap(functools.partial(_cut, place, cut))
                      | "Spread" >> beam.Reshuffle())
                 | "Write" >> beam.MapTuple(functools.partial(_write_results, place)))
                job = pipeline.run()
            except KeyboardInterrupt as interrupt:
                raise _first(interrupt) from None
            except _CANNOT_START as error:
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


def _checked_options(name: str, arguments: tuple[str, ...]) -> PipelineOptions:
    if arguments and not arguments[0].startswith("--"):
        raise UserError(f"--beam_options must be written --name=value. Received: "
                        f"{shown(arguments[0])}")
    messages = io.StringIO()
    options = PipelineOptions([*arguments, f"--runner={name}"])
    try:
        with _quiet(), contextlib.redirect_stderr(messages):
            known = options.get_all_options()
            unknown = options.get_all_options(retain_unknown_options=True).keys() - known.keys()
    except SystemExit:
        problem = messages.getvalue().strip().rpartition("error: ")[2]
        raise UserError(f"--beam_options: {problem}.") from None
    if unknown:
        names = ", ".join(f"--{one}" for one in sorted(unknown))
        if name in (_DIRECT, _DATAFLOW):
            raise UserError(f"--beam_options: Beam {beam.__version__} has no {names}.")
        print(f"warning: only a job server may know {names} of --beam_options.", file=sys.stderr)
    if name == _DIRECT and known["direct_running_mode"] != "in_memory":
        raise UserError("--beam_options: DirectRunner works with --direct_running_mode=in_memory "
                        "only; for several processes leave out --runner and give --num_workers.")
    return options


def _first(interrupt: BaseException) -> BaseException:
    """Returns the original interrupt; Beam wraps an interrupt of a worker's function."""
    while isinstance(interrupt.__context__, KeyboardInterrupt):
        interrupt = interrupt.__context__
    return interrupt


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
def _quiet() -> Iterator[None]:
    """Hides Beam's output on stderr; the exception that ends a job states the cause."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(before)


def _raise_refusal(place: Path, _kind: object, error: BaseException | None, _trace: object) -> None:
    """Raises the `UserError` that a worker wrote to a file instead of a job's own error."""
    if isinstance(error, Exception):
        for path in place.glob(f"{_REFUSED}*"):
            raise UserError(path.read_text(encoding="utf-8")) from None


@contextlib.contextmanager
def _refusing(place: Path) -> Iterator[None]:
    """Writes a `UserError`'s line to a file that the waiting process reads."""
    local_runner.quiet_worker()
    try:
        yield
    except UserError as error:
        with contextlib.suppress(OSError, UserError):
            (place / f"{_REFUSED}{os.urandom(8).hex()}").write_bytes(str(error).encode())
        raise


def _cut(place: Path, cut: Callable[[Piece], Iterable[Item]], piece: Piece) -> Iterator[Item]:
    with _refusing(place):
        yield from cut(piece)


def _worked(place: Path, work: Callable[[Item], Result], kind: type[Result], item: Item
            ) -> tuple[int, bytes]:
    """Returns the part of an item's result, and the result as JSON."""
    with _refusing(place):
        content = strict_json.dumps(work(item), kind)
    return zlib.crc32(content) % PARTS, content


def _write_results(place: Path, part: int, contents: Iterable[bytes]) -> None:
    with _refusing(place):
        atomic_file.write_atomically(
            place / f"part-{part:02d}", b"[%b]" % b",\n".join(sorted(contents)))


def _counted(place: Path, count: Callable[[Item], Words], item: Item
             ) -> Iterator[tuple[int, Words]]:
    """Yields the counts of an item's words by part."""
    with _refusing(place):
        groups: dict[int, Words] = collections.defaultdict(collections.Counter)
        for word, number in count(item).items():
            groups[zlib.crc32(word) % PARTS][word] = number
    yield from groups.items()


def _sum(parts: Iterable[Words]) -> Words:
    """Adds up counts: those of each worker first, then those of all workers."""
    total: Words = collections.Counter()
    for part in parts:
        total.update(part)
    return total


def _sums(part: int, counts: Words) -> tuple[int, list[bytes]]:
    by_text = {word.decode(): number for word, number in counts.items()}
    return part, [strict_json.dumps(by_text, dict[str, int])]


def _results(place: Path, kind: type[Result]) -> Iterator[Result]:
    for path in sorted(place.glob("part-*")):
        yield from strict_json.read(path, list[kind], max_bytes=_MOST_BYTES)
