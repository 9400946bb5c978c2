"""The worker's side: requests on stdin, replies on stdout, one JSON object a line.

The first request says what to measure, and is answered with what will be measured. Each of the
others asks for a turn. A closed stdin ends the worker. Standard library only: every environment
has it.
"""

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

Fields = Mapping[str, Any]
Answer = Callable[[Fields], Fields]
"""Maps a request to its reply."""


def serve(begin: Callable[[Fields], tuple[Fields, Answer]]) -> None:
    """Answers requests until stdin closes.

    Args:
        begin: maps the first request to its reply, and to what answers the others.
    """
    requests = (json.loads(line) for line in sys.stdin)
    hello, answer = begin(next(requests))
    reply(hello)
    for request in requests:
        reply(answer(request))


def reply(fields: Fields) -> None:
    """Writes a reply, on a line of its own even after a library that printed half a line."""
    print(f"\n{json.dumps(fields)}", flush=True)
