"""The socket that the local server listens at."""

import socket

from electra_tf.apps.serving import http_server


def test_answers_are_sent_without_waiting_for_more():
    """The kernel would keep the body of an answer back until the client confirms its headers."""
    with (http_server.listen("127.0.0.1", 0) as listening,
          socket.create_connection(listening.getsockname())):
        connection, _ = listening.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
