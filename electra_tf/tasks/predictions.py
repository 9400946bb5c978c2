"""Writes predictions: JSON lines, a kind's own format, and files for the benchmarks' servers."""

import json
from collections.abc import Callable, Mapping, Sequence

from electra_tf.platform.atomic_file import make_directory, write_atomically
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.tasks import glue
from electra_tf.tasks.examples import Kind
from electra_tf.tasks.kinds.kind import Record
from electra_tf.tasks.kinds.registry import KINDS
from electra_tf.tasks.mrqa import QUESTIONS

ANSWERS_FILE, NO_ANSWER_FILE = "predictions.json", "null_odds.json"
"""Files for SQuAD's and MRQA's evaluation: answers, and for 2.0 the logit of "no answer"."""
SCORED_ON_DEV = QUESTIONS
"""Tasks whose server or script scores the dev file, because no test file is public."""


def writer_for(path: Path, kind: Kind) -> Callable[[Sequence[Record]], None]:
    """Returns a function that writes predictions to a file: .jsonl or the kind's own format.

    Raises:
        UserError: another suffix.
    """
    forms = {".jsonl": _json_lines, KINDS[kind].suffix: KINDS[kind].written}
    if path.suffix not in forms:
        raise UserError(f"--output={path} must end in {' or '.join(forms)}.")
    form = forms[path.suffix]
    return lambda records: write_atomically(path, form(records).encode())


def write_submission(directory: Path, name: str, predictions: Mapping[str, Sequence[Record]],
                     ) -> list[Path]:
    """Writes the files that a benchmark's server takes, and returns them; none without a server.

    Args:
        directory: created if there is something to write.
        name: the task.
        predictions: split -> records.
    """
    if name in glue.TASKS:
        files = dict(glue.submission(
            glue.TASKS[name], split, [record["key"] for record in records],
            [record["prediction"] for record in records])
            for split, records in predictions.items())
    elif name in SCORED_ON_DEV:
        files = {}
        for records in predictions.values():
            files[ANSWERS_FILE] = KINDS[Kind.QUESTION_ANSWERING].written(records)
            if all("no_answer_score" in record for record in records):
                files[NO_ANSWER_FILE] = json.dumps(
                    {record["key"]: record["no_answer_score"] for record in records}) + "\n"
    else:
        files = {}
    if files:
        make_directory(directory)
    for file, content in files.items():
        write_atomically(directory / file, content.encode())
    return [directory / file for file in files]


def _json_lines(records: Sequence[Record]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)

