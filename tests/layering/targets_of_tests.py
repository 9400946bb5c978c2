"""BUILD files of the tests: a py_test for every file of tests, a py_library for what they share."""

import ast
import functools
import itertools
import pathlib

from tests.layering import labels, layers, starlark

# What tests read without importing it.
DATA = {
    "tests/parity/seeded_directories.py": ["//tests/checkpoints:golden"],
    "tests/server/test_documentation.py": ["//:docs/serving.md"],
    "tests/tools/test_estimate_cost.py": ["//:docs/literature.csv"],
    "tests/tools/test_list_settings.py": ["//:docs/configuration.md"],
}

# Its examples are those of all modules that it finds.
_FINDS_MODULES = "tests/test_docstring_examples.py"

# Folders whose tests read the checkout: git's list of files, the BUILD files, every source, the
# locks. A sandbox has none of it, and Bazel can't know when it changed: they run there, every time.
_READ_THE_CHECKOUT = ("tests/layering", "tests/supply_chain")

_RULES = "@rules_python//python:defs.bzl"
_MACROS = "//tests:pytest_test.bzl"
_ALL_TESTS = "//tests:__subpackages__"
_RUNNER = pathlib.Path("tests/run_pytest.py")


def files() -> dict[pathlib.Path, list[str]]:
    """Returns the statements of the tests' BUILD files, by path relative to the root."""
    paths = [path for path in layers.tests() if path.name != "__init__.py"]
    by_folder = itertools.groupby(sorted(paths, key=labels.package), labels.package)
    return {folder / "BUILD": _package(folder, list(paths)) for folder, paths in by_folder}


@functools.cache
def speeds(path: pathlib.Path) -> list[str]:
    """Returns which tests a file has: ["quick"], ["slow"] or both."""
    tree = layers.tree(path)
    if not any(isinstance(node, ast.Attribute) and node.attr == "slow" for node in ast.walk(tree)):
        return ["quick"]
    all_of_them = any(isinstance(node, ast.Assign) and "pytestmark" in ast.unparse(node.targets[0])
                      for node in tree.body)
    quick = [node for node in ast.walk(tree)
             if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
             and "pytest.mark.slow" not in map(ast.unparse, node.decorator_list)]
    return ["slow"] if all_of_them or not quick else ["quick", "slow"]


def _package(folder: pathlib.Path, paths: list[pathlib.Path]) -> list[str]:
    libraries = [_library(path) for path in paths if not _has_tests(path)]
    tests = [_test(path, speed) for path in paths if _has_tests(path) for speed in speeds(path)]
    macros = {call.partition("(")[0] for call in tests}
    loads = "".join(starlark.load(file, *sorted(names)) for file, names in (
        (_RULES, {"py_library"} if libraries else ()), (_MACROS, macros)) if names)
    golden = [starlark.call("filegroup", name="golden", testonly=True, srcs=_golden(folder),
                            visibility=[_ALL_TESTS])] if _golden(folder) else []
    return [loads, *golden, *libraries, *tests]


def _has_tests(path: pathlib.Path) -> bool:
    return path.name.startswith("test_")


def _golden(folder: pathlib.Path) -> list[str]:
    home = layers.ROOT / folder
    return sorted(str(path.relative_to(home)) for path in (home / "golden").glob("*"))


def _library(path: pathlib.Path) -> str:
    return starlark.call(
        "py_library", name=path.stem, testonly=True, srcs=[path.name],
        data=_data(path) + (["//:pyproject.toml"] if path == _RUNNER else []),
        visibility=[_ALL_TESTS], deps=sorted(_used(path)))


def _test(path: pathlib.Path, speed: str) -> str:
    reads_checkout = str(path.parent) in _READ_THE_CHECKOUT
    return starlark.call(
        "pytest_test" if speed == "quick" else "slow_pytest_test",
        name=_name(path, speed),
        data=_data(path), tags=["external", "local"] if reads_checkout else [],
        deps=sorted(_conftests(path) | _used(path)
                    | (_whole_program() if str(path) == _FINDS_MODULES else set())))


def _name(path: pathlib.Path, speed: str) -> str:
    return path.stem if speed == "quick" else f"{path.stem}_slow"


def _used(path: pathlib.Path) -> set[str]:
    """What a file imports or names; some tests import others, which are targets by speed."""
    return {_targets_of_files().get(label, label)
            for label in labels.dependencies(path) | labels.named(path)}


@functools.cache
def _targets_of_files() -> dict[str, str]:
    return {labels.label(path): f"//{path.parent}:{_name(path, speeds(path)[0])}"
            for path in layers.tests() if _has_tests(path)}


def _data(path: pathlib.Path) -> list[str]:
    has_golden = _golden(path.parent) and '"golden"' in (layers.ROOT / path).read_text()
    return DATA.get(str(path), []) + ([":golden"] if has_golden else [])


def _conftests(path: pathlib.Path) -> set[str]:
    return {labels.label(folder / "conftest.py") for folder in path.parents
            if (layers.ROOT / folder / "conftest.py").exists()}


def _whole_program() -> set[str]:
    return {labels.label(path) for path in layers.sources()
            if path.parts[0] in ("data_prep", "electra_tf") and path.stem != "__init__"}
