"""The requests in docs/reference/signatures_and_rest.md get the answers that are printed there."""

import json
import re
import shlex
import shutil
from pathlib import Path

from tests.apps.serving import running

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "reference" / "signatures_and_rest.md").read_text(encoding="utf-8")


def examples():
    """Yields path, body (None to get) and the printed answer of every `$ curl` on the page."""
    for block in re.findall(r"(?:^    .*\n)+", PAGE, re.MULTILINE):
        for example in re.split(r"^    \$ ", block, flags=re.MULTILINE)[1:]:
            command, answer = re.split(r"(?=^    \{\"(?:pred|outp|err|model))", example, maxsplit=1,
                                       flags=re.MULTILINE)
            words = shlex.split(command.replace("\\\n", " "))
            body = words[words.index("-d") + 1] if "-d" in words else None
            yield words[1].removeprefix("http://127.0.0.1:8501"), body, json.loads(answer)


def rounded(value):
    """JSON with its fractions as they are printed."""
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return list(map(rounded, value))
    return round(value, 5) if isinstance(value, float) else value


def test_requests_are_answered_as_printed(models, tmp_path):
    shutil.copytree(models / "texts" / "2", tmp_path / "demo" / "1")
    found = list(examples())
    assert len(found) >= 6
    with running.client(tmp_path / "demo") as client:
        for path, body, printed in found:
            status, content = client.send("GET" if body is None else "POST", path, body)
            assert status == (400 if "error" in printed else 200), (path, body, content)
            assert rounded(json.loads(content)) == rounded(printed), (path, body)
