"""BUILD files of the program: a py_library for what imports, a py_binary for every command."""

import ast
import itertools
import pathlib
from collections.abc import Iterable

from tests.layering import labels, layers, starlark

# Programs that a package starts in a process of its own, without importing them.
STARTED = {
    "electra_tf.tools": ["//:run_pretraining"],
    "experiments": ["//:run_finetuning", "//:run_pretraining"],
}

_RULES = "@rules_python//python:defs.bzl"
_TESTS = "//tests:__subpackages__"


def files() -> dict[pathlib.Path, list[str]]:
    """Returns the statements of the program's BUILD files, by path relative to the root."""
    by_folder = itertools.groupby(sorted(layers.sources(), key=labels.package), labels.package)
    return {folder / "BUILD": _package(folder, list(paths)) for folder, paths in by_folder}


def is_command(path: pathlib.Path) -> bool:
    """Returns whether a file is a command for people: workers that others start are none."""
    return any(isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)
               and "command_line.run(" in ast.unparse(node) for node in layers.tree(path).body)


def _package(folder: pathlib.Path, paths: list[pathlib.Path]) -> list[str]:
    if folder == pathlib.Path("."):
        binaries = [_binary(path, sorted(labels.dependencies(path))) for path in paths]
        return [starlark.load(_RULES, "py_binary"), *_groups(), *binaries]
    if labels.has_targets_per_file(folder):
        return [starlark.load(_RULES, "py_library"),
                *(_library(path.stem, [path]) for path in paths if path.stem != "__init__")]
    binaries = [_binary(path, [f":{folder.name}"]) for path in paths if is_command(path)]
    kinds = ["py_binary", "py_library"] if binaries else ["py_library"]
    return [starlark.load(_RULES, *kinds), _library(folder.name, paths), *binaries]


def _library(name: str, paths: list[pathlib.Path]) -> str:
    folder = labels.package(paths[0])
    kinds = () if labels.has_targets_per_file(folder) else ("*.html", "*.yaml")
    pages = [page.relative_to(layers.ROOT) for kind in kinds
             for page in (layers.ROOT / folder).rglob(kind)]
    unit = layers.unit(layers.module_name(paths[0]))
    return starlark.call(
        "py_library", name=name, srcs=_relative(paths, folder),
        data=_relative(pages, folder) + STARTED.get(unit, []), visibility=_visibility(unit),
        deps=sorted(set().union(*(labels.dependencies(path) for path in paths))))


def _binary(path: pathlib.Path, deps: list[str]) -> str:
    source = str(path.relative_to(labels.package(path)))
    users = [f"//{user.replace('.', '/')}:__pkg__" for user, started in STARTED.items()
             if labels.label(path) in started]
    return starlark.call("py_binary", name=path.stem, srcs=[source], main=source,
                         visibility=sorted([*users, _TESTS]), deps=deps)


def _relative(paths: Iterable[pathlib.Path], folder: pathlib.Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in paths)


def _groups() -> list[str]:
    """The package groups, each the packages above a layer."""
    return [_group(level) for level in range(len(layers.LAYERS))]


def _group(level: int) -> str:
    name = f"above_layer_{level}"
    if level == len(layers.LAYERS) - 1:
        beside = [f"//{name}/..." for name in layers.BESIDE]
        return starlark.call("package_group", name=name, packages=["//", *beside, "//tests/..."])
    # electra_tf's own modules are targets of one package and see each other without a group.
    packages = [f"//{unit.replace('.', '/')}/..." for unit in layers.LAYERS[level + 1]
                if not (layers.ROOT / unit.replace(".", "/")).with_suffix(".py").exists()]
    return starlark.call("package_group", name=name, packages=packages,
                         includes=[f":above_layer_{level + 1}"])


def _visibility(unit: str) -> list[str]:
    if unit == "data_prep":
        return [f"//{user}:__subpackages__" for user in ("benchmarks", "data_prep", "tests")]
    if unit == "benchmarks":
        return ["//benchmarks:__subpackages__", _TESTS]
    if unit not in layers.LEVEL:
        return [_TESTS]
    groups = [f"//:above_layer_{layers.LEVEL[unit]}"]
    if unit in layers.DATA_PREP_IMPORTS:
        groups.append("//data_prep:__subpackages__")
    return groups
