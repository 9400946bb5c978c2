"""A quick test that a server can be reached, before a library that retries for minutes."""

import ssl
import urllib.error
import urllib.request

from electra_tf.platform.errors import UserError, one_line

SECONDS = 10.0
"""Longest wait for one address of the server."""


def require_reachable(url: str, wanted: str, fix: str) -> None:
    """Returns if the server of a URL answers, directly or through the environment's proxy.

    Every status counts as an answer. Without one, raises UserError with what is `wanted` and `fix`.
    """
    opener = urllib.request.build_opener()  # With the proxies of the environment as it is now.
    try:
        opener.open(urllib.request.Request(url, method="HEAD"), timeout=SECONDS).close()
    except urllib.error.HTTPError as error:
        error.close()
    except OSError as error:
        reason = getattr(error, "reason", error)
        # The library that downloads may have other certificates than this interpreter.
        if not isinstance(reason, ssl.SSLError):
            raise UserError(f"{wanted} can't be downloaded from {url}: {one_line(str(reason))}. "
                            f"{fix}") from error
