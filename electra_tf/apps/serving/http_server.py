"""The HTTP server: where it listens and how it stops."""

import asyncio
import errno
import functools
import resource
import signal
import socket
from collections.abc import Callable, Coroutine

import uvicorn
from starlette.types import ASGIApp

from electra_tf.apps.serving.connections import LimitedConnection, Population
from electra_tf.platform.errors import UserError

# Requests still running after a signal to stop are given so long.
_LAST_REQUESTS_SECONDS = 60
_OTHER_FILES = 256  # Of models, libraries and clients that are turned away.

_FIXES = {
    errno.EADDRINUSE: "stop the program that has this port, or choose another",
    errno.EACCES: "choose a port from 1024 on",
}


def listen(host: str, port: int) -> socket.socket:
    """Returns a socket that takes connections already; they wait for the server.

    Args:
        host: an address of this machine, "0.0.0.0" for all.
        port: 0 for any that is free.

    Raises:
        UserError: the port is taken, or the address isn't this machine's.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.create_server(address[:2], family=family, backlog=1024)
    except OSError as error:
        fix = _FIXES.get(error.errno, "give --host an address of this machine, like 127.0.0.1")
        raise UserError(f"can't listen at --host={host} --port={port}: "
                        f"{error.strerror or error}; {fix}.") from error
    # Connections inherit it. Without it the body of an answer, sent after its headers, waits for
    # the client to confirm those: 44 ms of 56.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def address(listening: socket.socket) -> str:
    """Returns what a browser takes, as in `http://127.0.0.1:8501`."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Server(uvicorn.Server):
    """Answers requests: `run(sockets=[listen(...)])`.

    SIGTERM and Ctrl-C let it take no more requests, answer those that are running, and raise what
    the signal means to the program: SystemExit (`exit_on_sigterm`) or KeyboardInterrupt.
    """

    def __init__(self, application: ASGIApp, population: Population,
                 on_start: Callable[[], Coroutine[None, None, None] | None]):
        """Takes what answers, the connections, and what begins with the server.

        Args:
            application: what answers.
            population: the connections that there are, and their limits.
            on_start: is called when requests and signals are looked after; a coroutine that it
                returns runs until the server stops.
        """
        super().__init__(uvicorn.Config(
            application, lifespan="off", ws="none", log_level="error", access_log=False,
            server_header=False, timeout_graceful_shutdown=_LAST_REQUESTS_SECONDS,
            http=functools.partial(LimitedConnection, population)))
        self._on_start = on_start
        self._background: asyncio.Task | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begins to take connections; uvicorn calls it."""
        await super().startup(sockets)
        if (coroutine := self._on_start()) is not None:
            self._background = asyncio.create_task(coroutine)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answers what is running; uvicorn calls it."""
        if self._background is not None:
            self._background.cancel()
        await super().shutdown(sockets)


def allow_files(connections: int) -> None:
    """Lets this process open so many connections, beside the files that it needs.

    Raises:
        UserError: the system doesn't let it.
    """
    needed = connections + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise UserError(f"--max_connections={connections} needs {needed} open files, but this "
                        f"system allows {hard} (ulimit -Hn); choose at most "
                        f"{max(1, hard - _OTHER_FILES)}.")
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def exit_on_sigterm() -> None:
    """Lets SIGTERM end the program with status 0, also while a model is being loaded."""
    signal.signal(signal.SIGTERM, _exit)


def _exit(_signal: int, _frame: object) -> None:
    raise SystemExit(0)
