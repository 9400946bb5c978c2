"""Sentences with a tag per word, in CoNLL's column files.

CoNLL-2000 (Tjong Kim Sang and Buchholz, 2000): word, part of speech, chunk. CoNLL-2003 (Tjong Kim
Sang and De Meulder, 2003): word, part of speech, chunk, entity, with "-DOCSTART-" lines between
documents. An empty line ends a sentence.
"""

from collections.abc import Collection

from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path
from electra_tf.tasks.examples import TaggedExample
from electra_tf.tasks.tables import read_lines

DOCUMENT_START = "-DOCSTART-"
CONLL = {"chunk": ("train.txt", "test.txt"), "ner": ("train.txt", "valid.txt", "test.txt")}
"""Task -> files to train on and to score. CoNLL-2000 has no development file: its test file is
scored."""


def read_conll(path: Path, *, tagged: bool = True) -> list[TaggedExample]:
    """Returns all sentences of a file: the first column is the word, the last the tag.

    Tags in IOB1, which CoNLL-2003 was published in, come back as IOB2.

    Args:
        path: columns separated by spaces or tabs, the same number in every line.
        tagged: False if the last column is no tag, as in a file to predict.

    Raises:
        UserError: unreadable, no sentence, or another number of columns; with the line.
    """
    sentences: list[TaggedExample] = []
    words: list[str] = []
    tags: list[str] = []
    first_line, width = 1, None

    def finish() -> None:
        if words:
            sentences.append(TaggedExample(
                key=str(first_line), words=tuple(words),
                tags=tuple(to_iob2(tags)) if tagged else None))
            words.clear()
            tags.clear()

    for number, line in read_lines(path):
        cells = line.split()
        if not cells or cells[0] == DOCUMENT_START:
            finish()
            continue
        width = width or len(cells)
        if len(cells) != width or (tagged and width < 2):
            expected = "at least 2" if len(cells) == width else str(width)
            raise UserError(f"{path}:{number}: {len(cells)} columns, but {expected} are expected. "
                            f"Received: {line[:60]!r}")
        if not words:
            first_line = number
        words.append(cells[0])
        tags.append(cells[-1])
    finish()
    if not sentences:
        raise UserError(f"{path} holds no sentences.")
    return sentences


def refuse_sentences(path: Path, tags: Collection[str]) -> None:
    """Raises `UserError` for plain sentences in a file to predict, which has a word a line.

    Further columns are allowed. Plain sentences are recognized by their lines' last words, of which
    most have lower-case letters and are no tags.

    Args:
        path: the file.
        tags: the tag set, if known.
    """
    lines = [line.split() for _, line in read_lines(path)]
    last = [cells[-1] for cells in lines if len(cells) > 1]
    plain = [cell for cell in last if cell != cell.upper() and cell not in tags]
    if 2 * len(plain) > len(last):
        raise UserError(f"{path}: lines of several words such as {shown(' '.join(lines[0]))}; to "
                        "tag a sentence write one word per line and an empty line after it, or "
                        '.jsonl: {"words": ["He", "runs", "."]}.')


def to_iob2(tags: list[str]) -> list[str]:
    """Makes the first tag of every span a "B-": IOB1 writes it only between neighbours of a type.

    >>> to_iob2(["I-PER", "I-PER", "O", "I-LOC", "B-LOC", "I-PER"])
    ['B-PER', 'I-PER', 'O', 'B-LOC', 'B-LOC', 'B-PER']
    """
    fixed, before = [], "O"
    for tag in tags:
        starts = tag.startswith("I-") and before[2:] != tag[2:]
        fixed.append(f"B-{tag[2:]}" if starts else tag)
        before = tag
    return fixed
