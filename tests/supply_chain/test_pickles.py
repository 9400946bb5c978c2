"""Nothing that is read can run code: no pickles, no YAML with objects, no evaluated text."""

import ast
import re

from tests.layering import sources

# Modules whose files are code for whoever reads them.
MODULES = frozenset({
    "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "jsonpickle", "marshal", "pickle",
    "shelve"})

CALLS = re.compile(
    r"(eval|exec"
    r"|torch\.(load|jit\.load)"
    r"|(pd|pandas)\.read_pickle"
    r"|yaml\.(load|load_all|full_load|full_load_all|unsafe_load|unsafe_load_all|Loader"
    r"|UnsafeLoader|FullLoader))$")


def runs_code(tree):
    """Lines of a module that read what may hold code."""
    found = set()
    safe = {id(node.func) for node in ast.walk(tree) if is_safe_call(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", None)
            names = [alias.name for alias in node.names]
            full = [f"{module}.{name}" for name in names] if module else names
            if any(name.split(".")[0] in MODULES - {"pickle"} or name == "pickle"
                   or name.startswith("pickle.") and name != "pickle.UnpicklingError"
                   or is_call(name) for name in full):
                found.add(node.lineno)
        elif (isinstance(node, ast.Name | ast.Attribute) and is_call(dotted(node))
              and id(node) not in safe):
            found.add(node.lineno)
        elif isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            if not (isinstance(node.value, ast.Constant) and node.value.value is False):
                found.add(node.value.lineno)
    return sorted(found)


def is_safe_call(node):
    """torch.load with weights_only=True reads tensors and runs no code."""
    return (isinstance(node, ast.Call) and dotted(node.func) == "torch.load"
            and any(option.arg == "weights_only" and isinstance(option.value, ast.Constant)
                    and option.value.value is True for option in node.keywords))


def is_call(name):
    return CALLS.match(name) is not None


def dotted(node):
    """A name with its attributes, `yaml.load`; what isn't a name, as "?"."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def test_no_module_reads_what_may_hold_code():
    paths = sources.sources()
    assert {str(path): lines for path in paths if (lines := runs_code(sources.tree(path)))} == {}


FOUND = (
    "import pickle", "from pickle import loads", "import joblib", "from dill import load",
    "np.load(path, allow_pickle=True)", "np.load(path, allow_pickle=trusted)", "torch.load(path)",
    "torch.load(path, weights_only=False)", "torch.load(path, weights_only=flag)",
    "from torch import load", "yaml.load(text, yaml.SafeLoader)", "yaml.load(text, Loader)",
    "yaml.unsafe_load(text)", "class L(yaml.Loader): pass", "eval(text)", "map(eval, texts)",
    "exec(text)", "pd.read_pickle(path)", "def f():\n  import shelve",
)
PASSED = (
    "np.load(path)", "np.load(path, allow_pickle=False)", "yaml.safe_load(text)",
    "class L(yaml.SafeLoader): pass", "model.eval()", "results.eval", "json.load(file)",
    "from safetensors import numpy", "ast.literal_eval(text)", "print('pickle')",
    "torch.load(path, weights_only=True)", "from pickle import UnpicklingError",
)


def test_the_check_finds_what_runs_code_and_lets_the_rest_pass():
    assert [line for line in FOUND if not runs_code(ast.parse(line))] == []
    assert [line for line in PASSED if runs_code(ast.parse(line))] == []
