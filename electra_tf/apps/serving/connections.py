"""Connections that can't be held open for nothing: uvicorn's HTTP protocol with limits.

uvicorn bounds neither how many clients are connected nor how long one may take. Here every state
of a connection has a deadline: headers that come slowly or never, a body that goes on after its
answer, an answer that nobody reads. What isn't HTTP, or too long, is told so in JSON, like every
other error.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from electra_tf.apps.serving.strict_http import ConnectionLimits, StrictConnection, error_answer

_READ_BYTES = 64 * 1024  # At once from a connection; asyncio's own choice is four times as much.
_MAX_TURNED_AWAY = 128  # At a time, that may stay and read why.


class Population:
    """How many connections one server has."""

    def __init__(self, limits: ConnectionLimits):
        """Starts at none."""
        self.limits = limits
        self.open = 0
        self.leaving = 0
        """Turned away, but still reading why."""


class LimitedConnection(H11Protocol):
    """One client, from connecting to closing."""

    def __init__(self, population: Population, config: Config, server_state: ServerState,
                 app_state: dict[str, Any], _loop: asyncio.AbstractEventLoop | None = None):
        """Takes the server's connections, then what uvicorn gives its protocols."""
        super().__init__(config, server_state, app_state, _loop)
        self._population = population
        self._limits = population.limits
        self.conn = StrictConnection(population.limits)
        self.timeout_keep_alive = population.limits.idle_seconds
        self._turned_away = False
        self._finished = False  # Told an error; what still comes is thrown away.
        self._heard = False  # A part of the next request's headers.
        self._reading: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Takes the client, or turns it away."""
        transport.max_size = _READ_BYTES
        if self._population.open < self._limits.max_connections:
            self._population.open += 1
            super().connection_made(transport)
            self._expect(self._limits.header_seconds, self._headers_late)
            return
        self.transport, self._turned_away = transport, True
        self._population.leaving += 1
        if self._population.leaving > _MAX_TURNED_AWAY:
            transport.abort()
        else:
            self._tell(503, f"more than {self._limits.max_connections} clients are connected "
                            "(--max_connections)")

    def connection_lost(self, exc: Exception | None) -> None:
        """Lets go of everything."""
        self._expect_nothing()
        self.resume_writing()
        if self._turned_away:
            self._population.leaving -= 1
            return
        self._population.open -= 1
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Reads; what comes after an error is thrown away."""
        if self._finished or self.transport.is_closing():
            return
        self._heard = True
        super().data_received(data)
        if self._finished:
            return
        answered = self.cycle is None or self.cycle.response_complete
        if answered and self.conn.their_state is h11.IDLE:
            if self._reading is None:
                self._expect(self._limits.header_seconds, self._headers_late)
        elif not (answered and self.conn.their_state is h11.SEND_BODY):
            self._expect_nothing()

    def send_400_response(self, msg: str) -> None:
        """Tells what is wrong with a request that isn't one; uvicorn calls it."""
        error = self.conn.refusal
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            if self.cycle.response_started:
                self.transport.abort()
                return
        self._tell(error.error_status_hint, str(error))

    def on_response_complete(self) -> None:
        """Waits for the next request, for the rest of this one's body, or for the end."""
        self._heard = False
        super().on_response_complete()
        if self.transport.is_closing():
            self.loop.call_later(self._limits.linger_seconds, self.transport.abort)
        elif self.cycle.response_complete and self.conn.their_state is h11.SEND_BODY:
            self._expect(self._limits.linger_seconds, self.transport.abort)

    def timeout_keep_alive_handler(self) -> None:
        """Closes a connection without a next request, even if its last answer isn't read."""
        super().timeout_keep_alive_handler()
        self.loop.call_later(self._limits.linger_seconds, self.transport.abort)

    def shutdown(self) -> None:
        """Ends a connection without a request; others may finish theirs."""
        if self._finished:
            self.transport.abort()
        elif not self.transport.is_closing():
            super().shutdown()

    def pause_writing(self) -> None:
        """From here on the client must read."""
        super().pause_writing()
        self._watch_writing()

    def resume_writing(self) -> None:
        """The client has read nearly everything."""
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None
        if self.flow is not None:
            super().resume_writing()

    def _watch_writing(self) -> None:
        self._writing = self.loop.call_later(
            self._limits.stalled_seconds, self._check_writing,
            self.transport.get_write_buffer_size())

    def _check_writing(self, unread: int) -> None:
        if self.transport.get_write_buffer_size() < unread:
            self._watch_writing()
        else:
            self.transport.abort()

    def _should_upgrade(self) -> bool:
        return False  # There is nothing to upgrade to, and nothing to be logged about it.

    def _expect(self, seconds: float, otherwise: Callable[[], None]) -> None:
        self._expect_nothing()
        self._reading = self.loop.call_later(seconds, otherwise)

    def _expect_nothing(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _headers_late(self) -> None:
        if self._heard:
            self._tell(408, f"the headers took longer than {self._limits.header_seconds:g} s")
        else:
            self.transport.close()

    def _tell(self, status: int, message: str) -> None:
        """Writes an error and waits until the client has read it and gone."""
        self._finished = True
        self.transport.write(error_answer(status, message))
        self.transport.write_eof()
        self._expect(self._limits.linger_seconds, self.transport.abort)
