"""The sources of the project, and what they import."""

import ast
import functools
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
"""The checkout, also where Bazel runs a test among links to its files."""

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


def imported_names(path: pathlib.Path) -> set[str]:
    """Returns the dotted names that a file imports, at its top or inside functions."""
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def imports(path: pathlib.Path) -> set[str]:
    """Returns our modules that a file imports, at its top or inside functions."""
    return imported_names(path) & modules().keys()
