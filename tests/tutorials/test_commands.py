"""Commands on the pages have flags and settings that the programs know."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md")),
         *ROOT.glob("benchmarks/*.md")]
COMMAND = re.compile(r"python (?:-m )?((?:electra_tf|data_prep|experiments|benchmarks)\.[\w.]+"
                     r"|run_\w+\.py)(.*)")

CODE = re.compile(r"^```\w*\n(.*?)^```|((?:^ {4}.*\n)+)|`(python [^`]+)`", re.MULTILINE | re.DOTALL)


def commands():
    """Returns program -> the arguments of each of its commands in code on the pages."""
    found = {}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        blocks = map("".join, CODE.findall(text))
        code = re.sub(r"\\\n\s*", " ", "\n".join(blocks))
        for program, arguments in COMMAND.findall(code):
            found.setdefault(program, set()).add((page.name, arguments))
    return found


COMMANDS = commands()


def test_commands_are_found():
    assert len(COMMANDS) > 15 and sum(map(len, COMMANDS.values())) > 60


def test_settings_on_pages_exist():
    listed = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for setting in re.findall(r"--set[ =](?!section)(\w+\.\w+)=", text):
            assert f"| `{setting}`" in listed, (page.name, setting)


def test_make_targets_on_pages_exist():
    known = re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"))
    named = {(page.name, target) for page in PAGES for targets in re.findall(
        r"(?m)(?:^    |`)make ((?:[a-z-]+ ?)+)", page.read_text(encoding="utf-8"))
        for target in targets.split()}
    assert len(named) > 20
    assert {(page, target) for page, target in named if target not in known} == set()


@pytest.mark.slow
@pytest.mark.parametrize("program", sorted(COMMANDS))
def test_flags_on_pages_exist(program):
    start = [program] if program.endswith(".py") else ["-m", program]
    done = subprocess.run([sys.executable, *start, "--help"], cwd=ROOT, capture_output=True,
                          text=True, timeout=300, check=True)
    known = set(re.findall(r"--(?:\[no\])?(\w+)", done.stdout))
    used = {(page, flag) for page, arguments in COMMANDS[program]
            for flag in re.findall(r"(?:^|\s)--(\w+)", arguments.partition("--beam_options")[0])}
    assert {(page, flag) for page, flag in used if flag not in known | {"help"}} == set()
