"""Which target of Bazel's a file or an import is.

Where the files of a folder import each other in circles (data_prep and its sources, tasks and their
kinds), the folder and what is below it are one target, as in the table of layers. Modules that are
layers by themselves, scripts and the files of tests are targets of their own.
"""

import ast
import pathlib
import re
import sys

from tests.layering import layers

# Import name -> target of the pip hub. A name that is missing here is not a requirement of ours.
EXTERNAL = {
    "absl": "absl_py",
    "apache_beam": "apache_beam",
    "ai_edge_litert": "ai_edge_litert",
    "datasketch": "datasketch",
    "google": "protobuf",
    "h11": "h11",
    "matplotlib": "matplotlib",
    "mwparserfromhell": "mwparserfromhell",
    "numpy": "numpy",
    "official": "tf_models_official",
    "prometheus_client": "prometheus_client",
    "py3langid": "py3langid",
    "pyarrow": "pyarrow",
    "pydantic": "pydantic",
    "safetensors": "safetensors",
    "scipy": "scipy",
    "seqeval": "seqeval",
    "sklearn": "scikit_learn",
    "starlette": "starlette",
    "tensorflow": "tensorflow",
    "tensorflow_datasets": "tensorflow_datasets",
    "tensorflow_serving": "tensorflow_serving_api",
    "tensorflow_text": "tensorflow_text",
    "tf_keras": "tf_keras",
    "uvicorn": "uvicorn",
    "yaml": "pyyaml",
    "zstandard": "zstandard",
}

# The same of the tests' own hub (requirements/dev.txt).
EXTERNAL_OF_TESTS = {"hypothesis": "hypothesis", "pytest": "pytest"}

# Import names of the peers' environment (requirements/peers.txt): no hub has any of them.
PEERS = frozenset({"tokenizers", "torch", "transformers"})
# Likewise of the environment that compiles steps (requirements/compile.txt).
COMPILE = frozenset({"jax"})

_TOP = pathlib.Path("electra_tf")
_ROOT = pathlib.Path(".")

# Modules in a text, as commands and programs for other processes have them.
_NAMED = re.compile(r"\b(?:electra_tf|data_prep|benchmarks|experiments|run_\w+)\b(?:\.\w+)*")
_IMPORTED = re.compile(r"\bfrom ([\w.]+) import (\w+(?:, ?\w+)*)")


def package(path: pathlib.Path) -> pathlib.Path:
    """Returns the folder whose BUILD file has the target of a file."""
    if path.parts[0] == "data_prep":
        return pathlib.Path("data_prep")
    return pathlib.Path(*path.parent.parts[:2]) if path.parts[0] == "electra_tf" else path.parent


def has_targets_per_file(folder: pathlib.Path) -> bool:
    """Returns whether every file of a package is a target of its own."""
    return folder in (_ROOT, _TOP) or folder.parts[0] == "tests"


def label(path: pathlib.Path) -> str:
    """Returns the target that a file belongs to."""
    folder = package(path)
    if has_targets_per_file(folder):
        return f"//{'' if folder == _ROOT else folder}:{path.stem}"
    return f"//{folder}"


def dependencies(path: pathlib.Path) -> set[str]:
    """Returns the targets of what a file imports."""
    return _targets(layers.imports(path)) - {label(path)}


def named(path: pathlib.Path) -> set[str]:
    """Returns the targets of modules that a file names in texts, docstrings apart."""
    tree = layers.tree(path)
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = [node.value for node in ast.walk(tree)
             if isinstance(node, ast.Constant) and isinstance(node.value, str)
             and id(node) not in alone]
    names = {name for text in texts for name in _NAMED.findall(text)}
    names |= {f"{package}.{name}" for text in texts for package, listed in _IMPORTED.findall(text)
              for name in re.split(", ?", listed) if _NAMED.match(package)}
    return _targets({_longest_module(name) for name in names} - {"", "electra_tf"})


def _longest_module(name: str) -> str:
    """`electra_tf.config.sizes` of "electra_tf.config.sizes.SMALL"; "" if nothing of it is one."""
    while name and name not in layers.modules():
        name = name.rpartition(".")[0]
    return name


def _targets(modules: set[str]) -> set[str]:
    return {_target(name) for name in modules
            if name.split(".")[0] not in sys.stdlib_module_names | PEERS | COMPILE}


def _target(module: str) -> str:
    first = module.split(".")[0]
    if first in EXTERNAL:
        return f"@pypi//{EXTERNAL[first]}"
    if first in EXTERNAL_OF_TESTS:
        return f"@pypi_dev//{EXTERNAL_OF_TESTS[first]}"
    if module not in layers.modules():
        raise AssertionError(f"{module}: no module of ours, and in no table of labels.py")
    return label(layers.modules()[module])
