"""What runs in the compile environment imports nothing that isn't installed there."""

import ast
import re
import sys

from tests.layering import sources

ENTRIES = ("electra_tf.apps.stablehlo.run_step", "electra_tf.apps.stablehlo.ahead_of_time",
           "benchmarks.accelerator.__main__", "benchmarks.accelerator.ours")


def installed():
    text = (sources.ROOT / "requirements" / "compile.txt").read_text()
    names = re.findall(r"(?m)^([\w\-]+)==", text)
    return {{"absl-py": "absl"}.get(name, name.replace("-", "_")) for name in names}


def imported(node, inside_functions):
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            yield from (child.module, *(f"{child.module}.{alias.name}" for alias in child.names))
        elif inside_functions or not isinstance(child, ast.FunctionDef):
            yield from imported(child, inside_functions)


def reached(entry):
    """Every module of ours that importing one imports, and what else they import at once."""
    known = sources.modules().keys()
    open_modules, ours, others = [entry], set(), set()
    while open_modules:
        module = open_modules.pop()
        if module not in ours:
            ours.add(module)
            # Elsewhere what is imported inside functions is for paths that are addresses.
            inside = module == entry or module.startswith("electra_tf.apps.stablehlo.")
            names = set(imported(sources.tree(sources.modules()[module]), inside))
            open_modules += names & known
            others |= {name.split(".")[0] for name in names} - {"electra_tf", "benchmarks"}
    return ours, others - sys.stdlib_module_names


def test_the_commands_of_the_compile_environment_need_what_is_installed_there():
    for entry in ENTRIES:
        ours, others = reached(entry)
        assert len(ours) > 10
        assert others <= installed(), entry
    assert "tensorflow" in reached("electra_tf.apps.stablehlo.lift")[1]
