"""What a process wrote itself, without what TensorFlow's C++ writes beside it."""

import re

_LOG_LINE = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: |[IWEF]\d{4} |WARNING: All log messages")


def own_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if not _LOG_LINE.match(line)]
