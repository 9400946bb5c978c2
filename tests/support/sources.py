"""The sources of the project, and what they import."""

import ast
import functools
import pathlib
import sys
from collections.abc import Callable

ROOT = pathlib.Path(__file__).resolve().parents[2]
"""The checkout."""

PACKAGES = ("electra_tf", "data_prep", "benchmarks", "experiments")


def sources() -> list[pathlib.Path]:
    """Returns every Python file of the program, relative to the root; tests are not among them."""
    files = [*ROOT.glob("*.py")]
    files += [path for name in PACKAGES for path in (ROOT / name).rglob("*.py")]
    return sorted(path.relative_to(ROOT) for path in files)


def module_name(path: pathlib.Path) -> str:
    """Returns the dotted name of a file, a package's for its `__init__.py`."""
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def tree(path: pathlib.Path) -> ast.Module:
    """Returns the parsed source of a file, relative to the root."""
    return ast.parse((ROOT / path).read_text(encoding="utf-8"), filename=str(path))


@functools.cache
def modules() -> dict[str, pathlib.Path]:
    """Returns the file of every module by dotted name."""
    return {module_name(path): path for path in sources()}


def imported_names(path: pathlib.Path, *, inside_functions: bool = True) -> set[str]:
    """Returns the dotted names that a file imports, by default inside functions too."""
    waiting, names = [tree(path)], set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif inside_functions or not isinstance(node, ast.FunctionDef):
            waiting += ast.iter_child_nodes(node)
    return names


def closure(
    *entries: str, inside_functions: Callable[[str], bool] = lambda name: True
) -> tuple[set[str], set[str]]:
    """Returns our modules that these reach by imports, and the libraries that they import.

    `inside_functions` says of a module if its imports inside functions count.
    """
    waiting, ours, libraries = list(entries), set(), set()
    while waiting:
        name = waiting.pop()
        if name not in ours:
            ours.add(name)
            names = imported_names(modules()[name], inside_functions=inside_functions(name))
            waiting += names & modules().keys()
            libraries |= {name.split(".")[0] for name in names} - {*PACKAGES}
    return ours, libraries - sys.stdlib_module_names
