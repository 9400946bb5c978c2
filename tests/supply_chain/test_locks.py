"""What is installed: every package with its hashes in a lock, and every lock true to its source."""

import importlib.metadata
import re
import sys

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support import sources

FOLDER = sources.ROOT / "requirements"
NAMES = sorted(path.stem for path in FOLDER.glob("*.lock"))
# What is installed into one environment, the second on top of the first.
TOGETHER = (("program", "build"), ("program", "cuda"), ("program", "dev"),
            ("compile", "compile_cuda"))


def entries(path):
    """Requirement and options of every line, continued ones joined, without comments."""
    text = re.sub(r"(^|\s)#.*", "", path.read_text()).replace("\\\n", " ")
    parts = [line.partition(" --") for line in text.splitlines() if line.strip()]
    return [(Requirement(pin), f"{dashes}{options}".split()) for pin, dashes, options in parts]


def source(name):
    """The file that people write: the program's is where everybody looks for it."""
    return sources.ROOT / "requirements.txt" if name == "program" else FOLDER / f"{name}.txt"


def locked(name):
    """Version of every package that a lock installs on this platform."""
    return {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==")
            for pin, _ in entries(FOLDER / f"{name}.lock")
            if pin.marker is None or pin.marker.evaluate()}


def test_what_we_import_is_required_directly():
    required = {canonicalize_name(wanted.name) for wanted, _ in entries(source("program"))}
    distributions = importlib.metadata.packages_distributions()
    imported = set()
    for path in sources.sources():
        if path.parts[0] not in ("benchmarks", "experiments"):
            imported |= {name.split(".")[0] for name in sources.imported_names(path)}
    ours = {name.split(".")[0] for name in sources.modules()}
    others = imported - ours - sys.stdlib_module_names - {"torch"}
    # torch reads pickled weights where a user has it.
    # A top-level name such as "google" belongs to several distributions.
    assert [name for name in sorted(others)
            if required.isdisjoint(map(canonicalize_name, distributions.get(name, ())))] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_lock_holds_pinned_packages_with_hashes_as_its_source_asks(name):
    found = entries(FOLDER / f"{name}.lock")
    assert found
    wrong = [str(pin) for pin, hashes in found
             if pin.url or pin.extras or not re.fullmatch(r"==[\w.+]+", str(pin.specifier))
             or not hashes
             or not all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", word) for word in hashes)]
    assert wrong == []
    pins = locked(name)
    for wanted, options in entries(source(name)):
        assert not options
        if wanted.marker is None or wanted.marker.evaluate():
            version = pins.get(canonicalize_name(wanted.name))
            assert version and version in wanted.specifier, f"{wanted}: run `make lock`"


@pytest.mark.parametrize(("below", "above"), TOGETHER)
def test_what_two_locks_of_one_environment_share_has_one_version(below, above):
    first, second = locked(below), locked(above)
    shared = first.keys() & second.keys()
    assert shared
    assert {package: second[package] for package in shared} == {
        package: first[package] for package in shared}


def test_this_environment_is_what_the_locks_say():
    wanted = locked("program") | locked("dev") | locked("build")
    installed = {canonicalize_name(found.metadata["Name"]): found.version
                 for found in importlib.metadata.distributions()}
    assert {package: installed.get(package) for package in wanted} == wanted


def test_every_installation_asks_for_hashes():
    pages = list((sources.ROOT / "docs").rglob("*.md"))
    files = [sources.ROOT / name for name in ("Makefile", ".ci/run", "README.md")] + pages
    lines = [(path.name, line) for path in files for line in path.read_text().splitlines()
             if re.search(r"\b(pip3?|uv pip|uv tool) install\b|\buvx\b|\bpipx\b", line)]
    assert len(lines) > 1
    # The package is for environments of others, which choose the versions.
    assert [found for found in lines if "--require-hashes" not in found[1]
            and not re.search(r"pip install '?(electra-tf\b|\.\[)", found[1])] == []
