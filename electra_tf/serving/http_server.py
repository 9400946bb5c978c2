"""The HTTP server: where it listens and how it stops."""

import errno
import signal
import socket
from collections.abc import Callable

import uvicorn
from starlette.applications import Starlette

from electra_tf.command_line import UserError

# Requests still running after a signal to stop are given so long.
_LAST_REQUESTS_SECONDS = 60

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

    def __init__(self, application: Starlette, on_start: Callable[[], None]):
        """Takes what answers, and what is called when requests and signals are looked after."""
        super().__init__(uvicorn.Config(
            application, lifespan="off", log_level="warning", access_log=False,
            server_header=False, timeout_graceful_shutdown=_LAST_REQUESTS_SECONDS))
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begins to take connections; uvicorn calls it."""
        await super().startup(sockets)
        self._on_start()


def exit_on_sigterm() -> None:
    """Lets SIGTERM end the program with status 0, also while a model is being loaded."""
    signal.signal(signal.SIGTERM, _exit)


def _exit(_signal: int, _frame: object) -> None:
    raise SystemExit(0)
