"""Locks have hashes and agree with their sources, the environment and the wheel's metadata."""

import importlib.metadata
import re
import sys
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import electra_tf
from electra_tf.core.command_line import EXTRAS
from tests.support import sources
from tests.support.locks import FOLDER, entries, locked

ROOT = sources.ROOT
NAMES = sorted(path.stem for path in FOLDER.glob("*.lock"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# What is installed into one environment, the second on top of the first.
TOGETHER = (("program", "build"), ("program", "cuda"), ("program", "dev"))


def source(name):
    """The file that people write: the program's is where everybody looks for it."""
    return ROOT / "requirements.txt" if name == "program" else FOLDER / f"{name}.txt"


def test_what_we_import_is_required_directly():
    required = {canonicalize_name(requirement.name)
                for requirement, _ in entries(source("program"))}
    distributions = importlib.metadata.packages_distributions()
    imported = {name.split(".")[0] for path in sources.sources()
                if path.parts[0] not in ("benchmarks", "experiments")
                for name in sources.imported_names(path)}
    ours = {name.split(".")[0] for name in sources.modules()}
    # torch reads pickled weights where a user has it, and a tracker is a user's choice.
    others = imported - ours - sys.stdlib_module_names - {"torch", "wandb", "mlflow"}
    # A top-level name such as "google" belongs to several distributions.
    assert [name for name in sorted(others)
            if required.isdisjoint(map(canonicalize_name, distributions.get(name, ())))] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_lock_has_pinned_packages_with_hashes_as_its_source_requires(name):
    lock, pins = entries(FOLDER / f"{name}.lock"), locked(name)
    assert lock
    assert [str(pin) for pin, hashes in lock
            if pin.url or pin.extras or not re.fullmatch(r"==[\w.+]+", str(pin.specifier))
            or not hashes or not all(
                re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", word) for word in hashes)] == []
    for requirement, options in entries(source(name)):
        assert not options
        if requirement.marker is None or requirement.marker.evaluate():
            version = pins.get(canonicalize_name(requirement.name))
            assert version and version in requirement.specifier, f"{requirement}: run `make lock`"


@pytest.mark.parametrize(("below", "above"), TOGETHER)
def test_two_locks_of_one_environment_have_equal_versions(below, above):
    first, second = locked(below), locked(above)
    shared = first.keys() & second.keys()
    assert shared
    assert {name: second[name] for name in shared} == {name: first[name] for name in shared}


def test_this_environment_is_what_the_locks_say():
    versions = locked("program") | locked("dev") | locked("build")
    installed = {canonicalize_name(distribution.metadata["Name"]): distribution.version
                 for distribution in importlib.metadata.distributions()}
    assert {name: installed.get(name) for name in versions} == versions


def test_every_installation_requires_hashes():
    pages = list((ROOT / "docs").rglob("*.md"))
    files = [ROOT / name for name in ("Makefile", ".ci/run", "README.md")] + pages
    lines = [(path.name, line) for path in files for line in path.read_text().splitlines()
             if re.search(r"\b(pip3?|uv pip|uv tool) install\b|\buvx\b|\bpipx\b", line)]
    assert len(lines) > 1
    # The package is for environments of others, which choose the versions; without an index and
    # dependencies, nothing is fetched.
    assert [(name, line) for name, line in lines if "--require-hashes" not in line
            and "--no-index --no-deps" not in line
            and not re.search(r"pip install '?[./]", line)] == []


def test_every_pinned_version_is_in_the_range_of_the_wheel():
    extras = PROJECT["optional-dependencies"]
    assert set(EXTRAS.values()) <= set(extras)
    pins = dict(re.findall(r"^([\w.-]+?)(?:\[[\w-]+\])?==(\S+)", "\n".join(
        path.read_text(encoding="utf-8") for path in (
            ROOT / "requirements.txt", *FOLDER.glob("*.txt"))), re.M))
    pins = {canonicalize_name(name): version for name, version in pins.items()}
    ranges = [Requirement(line) for lines in (PROJECT["dependencies"], *extras.values())
              for line in lines]
    assert [str(requirement) for requirement in ranges if not requirement.specifier.contains(
        pins[canonicalize_name(requirement.name)])] == []


def test_the_version_is_defined_once():
    assert PROJECT["dynamic"] == ["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", electra_tf.__version__)
    for name in ("CHANGELOG.md", "CITATION.cff"):
        assert electra_tf.__version__ in (ROOT / name).read_text(encoding="utf-8")
