"""Every measured number of a page is in docs/numbers.yaml, with an origin that contains it.

A number is measured if a unit follows it (`5 to 10 minutes`), if it has a decimal point or a
thousands separator, if a metric precedes it (`AUC 1`), or if its column's head names a metric or a
unit. Versions, numbers of sections, code and counts of inputs (`10,000 steps`) are not.
"""

import contextlib
import itertools
import math
import re
import sqlite3
import statistics
from pathlib import Path

import pytest
import yaml

from electra_tf.reporting.learning_curves import NETWORKS
from tests.support import sources

ROOT = Path(__file__).parents[2]
GENERATED = ("docs/configuration.md", "docs/reference/python.md")
"""Pages that another test compares with the code."""
PAGES = {(page.parent.name + "/") * (page.stem == "README" and page.parent != ROOT) + page.stem:
         page for page in (ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")))
         if str(page.relative_to(ROOT)) not in GENERATED}
GROUPS = yaml.load((ROOT / "docs/numbers.yaml").read_text(encoding="utf-8"), yaml.BaseLoader)
WORDS = {word: value for value, word in enumerate(
    "two three four five six seven eight nine ten eleven twelve".split(), start=2)}
DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?(?:e[-+]?\d+)?)"
NUMBER = rf"(?:{DIGITS}|\b(?:{'|'.join(WORDS)})\b)"
FACTORS = {"µs": 1e-6, "ms": 1e-3, "s": 1, "second": 1, "min": 60, "minute": 60, "h": 3600,
           "hour": 3600, "day": 86400, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2**10,
           "MiB": 2**20, "GiB": 2**30, "billion": 1e9, "million": 1e6}
UNIT = (r"(?:(?:(?:million|billion)\s)?(?:tokens|examples|texts|sentences|questions|requests)/s|"
        r"(?:million|billion)\b|%|per\scent|[GT]FLOP/s|FLOPs|"
        r"(?:[mµ]?s|min|h|[KMG]i?B(?:/s)?|bytes|bits|times|lines|ops|dollars|"
        r"(?:second|minute|hour|day|point|code\spoint)s?)\b(?!-))")
MEASURED = re.compile(
    rf"(?<![\w.,/^-])(?P<number>{NUMBER})(?![\w^]|[.,]\d|\sx\s+\d)(?=(?:(?:\s(?:to|and|or|of|±|\+)"
    rf"\s|\s?[-–]\s?)\**{DIGITS})*\**\s?(?P<unit>{UNIT})?)")
METRIC = (r"(?:\b(?:AUC|F1|[Aa]ccuracy|[Rr]ecall|[Pp]recision|[Cc]orrelation|[Ee]xact match|EM|"
          r"Spearman|Matthews|BLiMP|MRR|chunking)\b|\b[a-z]+s/s|FLOP/s|\binstead of)")
HEAD = re.compile(METRIC + r"|\b(?:time|seconds|size|memory|dollars|speed|ms|[MG]B)\b|%|per cent")
COUNT = re.compile(
    rf"(?:\sto\s{DIGITS})?\s(?:values|steps|examples|tokens|pieces|entries|words|texts|sentences|"
    r"characters|rows|questions|labels|documents|labelled|positions)\b")
VERSION = (r"\b(?:Python|TensorFlow|Serving|Garden|Garden, all|NumPy|PyTorch|Unicode|Debian|Beam|"
           r"Bazel|SQuAD|Apache|transformers|glibc|protobuf|pyarrow|tf2onnx|Runtime|sections?|tables?|"
           r"figures?|CUDA|cuDNN|NCCL|capability|ELECTRA,)\s\d[\d.]*\d"
           r"(?:(?:,|,? or|,? and| to)\s\d+\.[\d.]*\d)*")
NOT_PROSE = re.compile(
    rf"(?s)\A---\n.*?\n---\n|`[^`\n]*`(?:\s\(\d[^\s)]*)?|\]\([^)]*\)|https?:\S+|"
    rf"<[^>]*?alt=|<[^>]*>|{VERSION}")


def code_comments(match):
    """Returns the comments of a block of code, and its lines of output."""
    return "\n".join(line if re.fullmatch(r"[\w\s.,%:;/-]*", line) and "--" not in line
                     else line.partition("# ")[2] for line in match[0].split("\n"))


def is_measured(match, text, head):
    """True if a match of `MEASURED` in a text is a measured number; the head is its column's."""
    number, before = match["number"], text[max(0, match.start() - 40):match.start()]
    if match["unit"] or re.search(r"\d[.e]", number):
        return True
    if COUNT.match(text, match.end("number")):
        return False
    return "," in number and not head or bool(number[0].isdigit() and (
        re.search(METRIC + r"(?:(?! at )[^.|\d(-])*$", before) or HEAD.search(head)))


def measured_numbers(text):
    """Returns (line, number with its unit) of every measured number in a page."""
    text = re.sub(r"(?ms)^```.*?^```$|(?<=\n\n)(?: {4,}\S[^\n]*\n+)+", code_comments, text)
    text, heads, numbers, start = NOT_PROSE.sub(
        lambda match: " X " + "\n" * match[0].count("\n"), text), (), [], 0
    for index, line in enumerate(text.split("\n"), start=1):
        is_head, cells = not heads, line.split("|") if line.lstrip().startswith("|") else ()
        heads = (heads or cells) if cells else ()
        for match in MEASURED.finditer(text, start):  # Units may be on the next line.
            if match.start() > start + len(line) or cells and is_head:
                break
            column = line[:match.start() - start].count("|")
            head = heads[1] + heads[column] if 1 < column < len(heads) else " " * bool(heads)
            if is_measured(match, text, head):
                numbers.append((index, re.sub(r"\s+", " ", " ".join(filter(None, match.groups())))))
        start += len(line) + 1
    return numbers


def test_measured_numbers_are_told_from_settings():
    page = """Python 3.11 trains 10,000 steps at `--rate=0.1`, see section 3.4. It takes 5 to 10
minutes, 7,825 tokens/s and AUC 1.

| steps | time, s | `x` |
|---|---|---|
| 2,000 | 9 | 3 x 128 |

    command --limit=0.5   # about 1.5 GB
"""
    assert measured_numbers(page) == [
        (1, "5 minutes"), (1, "10 minutes"), (2, "7,825 tokens/s"), (2, "1"), (6, "9"),
        (8, "1.5 GB")]


def quantity(text):
    """Returns the value of a number with its unit, in the base unit, and half of its last digit."""
    number, _, unit = text.partition(" ")
    number = str(WORDS.get(number, number)).replace(",", "").replace("_", "")
    mantissa, _, exponent = number.partition("e")
    factor = math.prod(FACTORS.get(word, FACTORS.get(word.removesuffix("s"), 1))
                       for word in unit.split(" ")) * 10 ** int(exponent or 0)
    digits = len(mantissa.partition(".")[2])
    if not digits and "," in text:
        digits = len(mantissa.rstrip("0")) - len(mantissa)
    return float(mantissa) * factor, 0.5001 * 10 ** -digits * factor


def is_rounded(number, exact):
    """True if a number is the rounding of an exact one, of the same unit unless it has its own."""
    value, tolerance = quantity(number)
    unit = number.partition(" ")[2]
    return any(abs(quantity(text)[0] * scale - value) <= tolerance for text in (
        exact, exact + f" {unit}" * (" " not in exact)) for scale in (1, 100 if "%" in unit else 1))


def lines(*paths):
    """Returns the number of lines of files."""
    return sum(len((ROOT / path).read_text(encoding="utf-8").splitlines()) for path in paths)


def evaluate(expression):
    """Returns the value of an expression of a group `computed` as a decimal number."""
    names = {"sqrt": math.sqrt, "log": math.log, "log2": math.log2, "lines": lines,
             "imports": lambda *names: map(sources.modules().get, sources.closure(*names)[0]),
             "auc": {network.name: network.auc for network in NETWORKS}}
    return f"{float(eval(expression, {'__builtins__': {}}, names)):.12f}"


def contains(text, number):
    """True if a text has a number that is no part of a longer one; a short one with its unit."""
    value, _, unit = number.partition(" ")
    unit = rf"(?= ?{re.escape(unit.removesuffix('s'))})" if unit and len(value) < 3 else ""
    return re.search(rf"(?<![\d.,]){re.escape(value)}(?!\d|[.,]\d){unit}", text)


def listed():
    """Returns (index of the group, pages, what, number, exact number or expression)."""
    for index, group in enumerate(GROUPS):
        for what, numbers in group["numbers"].items():
            for number in numbers.split("; "):
                number, _, exact = number.partition(" = ")
                yield index, group["pages"].split(", "), what, number, exact or number


def recorded():
    """Returns the means, standard errors and million tokens of the recorded runs, rounded."""
    with contextlib.closing(sqlite3.connect(ROOT / "experiments/recorded.sqlite")) as table:
        rows = table.execute("SELECT tokens, 100 * score, sweep, budget, variant, task FROM scores "
                             "WHERE main AND score IS NOT NULL ORDER BY 3, 4, 5, 6").fetchall()
    for _, runs in itertools.groupby(rows, key=lambda row: row[2:]):
        tokens, scores, *_ = zip(*runs, strict=True)
        yield from (f"{value:.1f}" for value in (tokens[0] / 1e6, statistics.mean(scores)))
        if len(scores) > 1:
            yield f"{statistics.stdev(scores) / math.sqrt(len(scores)):.1f}"


LISTED = list(listed())
STATED = {name: measured_numbers(page.read_text(encoding="utf-8")) for name, page in PAGES.items()}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_states_listed_numbers_only(name):
    numbers = {number for _, pages, _, number, _ in LISTED if name in pages}
    numbers.update(recorded() if name == "results" else ())
    path = PAGES[name].relative_to(ROOT)
    stray = [f"{path}:{line}: {number}: measure it, log it in experiments/log/ and list it in "
             "docs/numbers.yaml, or remove it" for line, number in STATED[name]
             if number not in numbers]
    assert not stray, "\n".join(stray)


def test_listed_numbers_are_stated():
    used = {(origin, page, number) for origin, pages, _, number, _ in LISTED for page in pages
            if number in {number for _, number in STATED.get(page, ())}}
    stray = [f"docs/numbers.yaml: {number} ({what}) is on none of {pages}; remove it"
             for origin, pages, what, number, _ in LISTED
             if not any((origin, page, number) in used for page in pages)]
    assert not stray, "\n".join(stray)
    pages = {(origin, page) for origin, pages, *_ in LISTED for page in pages}
    assert pages == {(origin, page) for origin, page, _ in used}, "pages without a number"


@pytest.mark.parametrize("index", range(len(GROUPS)))
def test_listed_numbers_are_in_their_origin(index):
    (kind, origin), *_ = GROUPS[index].items()
    path = ROOT / (f"experiments/log/{origin}.md" if kind == "log" else origin)
    text = path.read_text(encoding="utf-8") if kind != "computed" and path.is_file() else ""
    if kind == "log":
        assert re.search(r"(?m)^machine: \S", text), f"{origin}: the machine is missing"
        command = re.search(r"\*\*Command|`[^`]*(python|make|pytest|\.py)", text)
        assert command, f"{origin}: the command is missing"
    else:
        assert kind == "computed" or text or "https://" in origin, f"no file: {origin}"
    for _, _, what, number, exact in (entry for entry in LISTED if entry[0] == index):
        exact = evaluate(exact) if kind == "computed" else exact
        assert not text or contains(text, exact), f"{origin} has no {exact} ({what})"
        assert is_rounded(number, exact), f"{number} ({what}) is not {exact} rounded"
