"""A quick test that a server can be reached, before a library that retries for minutes."""

import queue
import ssl
import threading
import urllib.error
import urllib.request

from electra_tf.platform.errors import UserError, one_line

SECONDS = 10.0
"""Longest wait, names and all addresses of the server included."""


def require_reachable(url: str, wanted: str, fix: str) -> None:
    """Returns if the server of a URL answers, directly or through the proxy of the environment.

    Args:
        url: an http or https address; every status counts as an answer.
        wanted: what is to be downloaded.
        fix: what to do without a network.

    Raises:
        UserError: the server does not answer within `SECONDS`.
    """
    outcome: queue.SimpleQueue[str] = queue.SimpleQueue()
    # The resolver of the operating system has no time limit of ours, so a thread waits for it.
    threading.Thread(target=lambda: outcome.put(_problem(url)), daemon=True).start()
    try:
        problem = outcome.get(timeout=SECONDS)
    except queue.Empty:
        problem = f"no answer within {SECONDS:g} s"
    if problem:
        raise UserError(f"{wanted} can't be downloaded from {url}: {one_line(problem)}. {fix}")


def _problem(url: str) -> str:
    """Returns the reason why a server can't be reached, "" if it answers."""
    opener = urllib.request.build_opener()  # With the proxies of the environment as it is now.
    try:
        opener.open(urllib.request.Request(url, method="HEAD"), timeout=SECONDS).close()
    except urllib.error.HTTPError as error:
        error.close()
    except urllib.error.URLError as error:
        # The library that downloads may have other certificates than this interpreter.
        return "" if isinstance(error.reason, ssl.SSLError) else str(error.reason)
    except OSError as error:
        return str(error)
    return ""
