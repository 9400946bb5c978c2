"""Runs work on this machine, in one or several processes."""

import collections
import concurrent.futures
import dataclasses
import itertools
import multiprocessing
import multiprocessing.connection
import multiprocessing.resource_tracker
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator

from data_prep.work_units import CorpusPart, Item, Result, WordCounts
from electra_tf.core import machine
from electra_tf.core.errors import UserError
from electra_tf.core.signals import STOPPING


@dataclasses.dataclass(frozen=True)
class LocalRunner:
    """A runner on this machine: one worker is this process; several are processes of their own."""

    num_workers: int = 1

    def run(self, parts: Iterable[CorpusPart], cut: Callable[[CorpusPart], Iterable[Item]],
            work: Callable[[Item], Result], kind: type[Result]) -> Iterator[Result]:
        """Yields results in order; at most `num_workers` + 2 items exist at a time."""
        items = itertools.chain.from_iterable(map(cut, parts))
        if self.num_workers == 1:
            yield from map(work, items)
            return
        # Keep every worker busy with one item more than there are workers.
        pool = concurrent.futures.ProcessPoolExecutor(
            self.num_workers, mp_context=multiprocessing.get_context("spawn"),
            initializer=_start_worker)
        pending: collections.deque[concurrent.futures.Future] = collections.deque()
        multiprocessing.resource_tracker.ensure_running()  # Its start unblocks signals.
        try:
            for item in items:
                # The parent handles SIGTERM and Ctrl-C, not workers that start in `submit`.
                signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
                try:
                    pending.append(pool.submit(work, item))
                finally:
                    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
                if len(pending) > self.num_workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        except KeyboardInterrupt:
            for worker in multiprocessing.active_children():
                worker.kill()
            raise
        except concurrent.futures.process.BrokenProcessPool as error:
            raise UserError("a worker process was killed, probably because memory ran out; run "
                            "the same command with a smaller --num_workers (--overwrite would "
                            "remove the finished shards).") from error
        finally:
            pool.shutdown(cancel_futures=True)

    def add_up(self, parts: Iterable[CorpusPart], cut: Callable[[CorpusPart], Iterable[Item]],
               count: Callable[[Item], WordCounts]) -> Iterator[WordCounts]:
        """Yields the counts of all items, in order."""
        return self.run(parts, cut, count, collections.Counter)


def quiet_tensorflow() -> None:
    """Disables TensorFlow's log output and the GPUs; call it before TensorFlow's import."""
    machine.configure_process()
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"


def quiet_worker() -> None:
    """Limits this process, one of several workers, to one thread."""
    quiet_tensorflow()
    os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
    os.environ.setdefault("TF_NUM_INTEROP_THREADS", "1")


def _start_worker() -> None:
    """Prepares this worker process, which then ends when its parent ends."""
    quiet_worker()
    # A killed parent leaves no signal; its sentinel, a pipe, becomes readable.
    parent = multiprocessing.parent_process()

    def follow_parent() -> None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=follow_parent, daemon=True).start()
