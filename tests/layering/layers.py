"""Which package may import which: the table, and what the sources really import."""

import ast
import functools
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
"""The checkout itself, also where Bazel runs a test among links to its files."""

# Lowest first. A module imports from lower rows or from its own package, never sideways.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("electra_tf.native_logging", "electra_tf.signals", "electra_tf.errors"),
    ("electra_tf.command_line",),
    ("electra_tf.storage",),
    ("electra_tf.reading",),
    ("electra_tf.atomic_file", "electra_tf.config"),
    ("electra_tf.process_lock",),
    ("electra_tf.text",),
    ("electra_tf.records", "electra_tf.cost"),
    ("electra_tf.input", "electra_tf.distribution", "electra_tf.optimization",
     "electra_tf.modeling", "electra_tf.metrics"),
    ("electra_tf.objectives",),
    ("electra_tf.tasks",),
    ("electra_tf.checkpoints",),
    ("electra_tf.training", "electra_tf.reporting"),
    ("electra_tf.pretraining", "electra_tf.finetuning", "electra_tf.export", "electra_tf.server"),
    ("electra_tf.demo", "electra_tf.inspection", "electra_tf.stablehlo"),
    ("electra_tf.tools",),
)

# Preparing data is a program of its own, beside the trainer: it shares the formats alone, those of
# the tasks' files among them, which text is cleaned of.
DATA_PREP_IMPORTS = frozenset({
    "electra_tf.native_logging", "electra_tf.signals", "electra_tf.errors",
    "electra_tf.command_line",
    "electra_tf.storage", "electra_tf.reading", "electra_tf.atomic_file",
    "electra_tf.process_lock", "electra_tf.records", "electra_tf.tasks", "electra_tf.text"})

BESIDE = ("benchmarks", "experiments")
"""Programs that use the others, each by itself."""
LEVEL = {unit: level for level, row in enumerate(LAYERS) for unit in row}


def sources() -> list[pathlib.Path]:
    """Returns every Python file of the program, relative to the root; tests are not among them."""
    folders = [ROOT / name for name in ("electra_tf", "data_prep", "benchmarks", "experiments")]
    files = [*ROOT.glob("*.py"), *(path for folder in folders for path in folder.rglob("*.py"))]
    return sorted(path.relative_to(ROOT) for path in files)


def tests() -> list[pathlib.Path]:
    """Returns every Python file of the tests, relative to the root."""
    return sorted(path.relative_to(ROOT) for path in (ROOT / "tests").rglob("*.py"))


def module_name(path: pathlib.Path) -> str:
    """Returns the dotted name of a file, a package's for its `__init__.py`."""
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def unit(module: str) -> str:
    """Returns what a module counts as in the table: "electra_tf.config" for its checks.py."""
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "electra_tf" else parts[0]


@functools.cache
def tree(path: pathlib.Path) -> ast.Module:
    """Returns the parsed source of a file, relative to the root."""
    return ast.parse((ROOT / path).read_text(encoding="utf-8"), filename=str(path))


def imports(path: pathlib.Path, *, inside_functions: bool = True) -> set[str]:
    """Returns the dotted names of all modules that a file imports, inside functions too or not."""
    found = set()
    for node in ast.walk(tree(path)) if inside_functions else tree(path).body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise AssertionError(f"{path}:{node.lineno}: a relative import; write it in full")
            found |= {_imported(node.module, alias.name) for alias in node.names}
    return found


def _imported(package: str, name: str) -> str:
    """`from package import name` imports a module if there is one of that name."""
    full = f"{package}.{name}"
    return full if full in modules() else package


@functools.cache
def modules() -> dict[str, pathlib.Path]:
    """Returns the file of every module, the tests' too, by dotted name."""
    return {module_name(path): path for path in [*sources(), *tests()]}


def violation(importer: str, imported: str) -> str | None:
    """Returns why a unit must not import another one of ours, or None if it may.

    Args:
        importer: a unit: of the table, "data_prep", one of `BESIDE` or a script's name.
        imported: likewise.
    """
    if importer == imported:
        return None
    if importer == "data_prep":
        return None if imported in DATA_PREP_IMPORTS else "data_prep shares the formats alone"
    if imported in BESIDE:
        return "what is measured does not know that it is"
    if importer in LEVEL and imported == "data_prep":
        return "the trainer does not know how its data was made"
    if importer in LEVEL and LEVEL.get(imported, len(LAYERS)) >= LEVEL[importer]:
        return "not in a lower layer"
    return None
