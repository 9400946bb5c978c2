"""The metadata of the wheel agrees with the sources and with the locks."""

import ast
import pathlib
import re
import tomllib

from packaging.requirements import Requirement

import electra_tf
from electra_tf.platform.command_line import EXTRAS

ROOT = pathlib.Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
RANGES = [Requirement(line) for line in PROJECT["dependencies"]] + [
    Requirement(line) for lines in PROJECT["optional-dependencies"].values() for line in lines]


def test_every_pinned_version_is_in_the_range_of_the_wheel():
    pinned = dict(re.findall(r"^([\w.-]+?)(?:\[[\w-]+\])?==(\S+)", "\n".join(
        path.read_text(encoding="utf-8") for path in (
            ROOT / "requirements.txt", *(ROOT / "requirements").glob("*.txt"))), re.M))
    pinned = {name.lower().replace("_", "-"): version for name, version in pinned.items()}
    wrong = {one.name: str(one.specifier) for one in RANGES
             if not one.specifier.contains(pinned[one.name.lower().replace("_", "-")])}
    assert wrong == {}


def test_every_extra_that_a_message_names_exists():
    assert set(EXTRAS.values()) <= set(PROJECT["optional-dependencies"])


def test_every_console_script_is_a_function_without_arguments():
    for name, target in PROJECT["scripts"].items():
        module, function = target.split(":")
        path = ROOT / f"{module.replace('.', '/')}.py"
        defined = {node.name: node for node in ast.parse(path.read_text(encoding="utf-8")).body
                   if isinstance(node, ast.FunctionDef)}
        assert not defined[function].args.args, name


def test_the_version_is_defined_once():
    assert PROJECT["dynamic"] == ["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", electra_tf.__version__)
    for name in ("CHANGELOG.md", "CITATION.cff"):
        assert electra_tf.__version__ in (ROOT / name).read_text(encoding="utf-8")
