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
    """Returns if the server of a URL answers, directly or through the environment's proxy.

    Every status counts as an answer. Raises UserError with what is `wanted` and the `fix` if none
    comes within `SECONDS`.
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
    opener = urllib.request.build_opener()  # With the proxies of the environment as it is now.
    try:
        opener.open(urllib.request.Request(url, method="HEAD"), timeout=SECONDS).close()
    except urllib.error.HTTPError as error:
        error.close()
    except OSError as error:
        reason = getattr(error, "reason", error)
        # The library that downloads may have other certificates than this interpreter.
        return "" if isinstance(reason, ssl.SSLError) else str(reason)
    return ""
