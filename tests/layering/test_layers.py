"""The architecture, checked: layers, forbidden constructs, light imports."""

import ast
import re
import subprocess
import sys

import pytest

from tests.layering import layers

SOURCES = layers.sources()

# Modules that must start without TensorFlow's seconds and without matplotlib.
LIGHT = (
    "electra_tf.atomic_file", "electra_tf.command_line", "electra_tf.config.overrides",
    "electra_tf.config.pretraining", "electra_tf.config.runtime", "electra_tf.config.sizes",
    "electra_tf.cost.devices", "electra_tf.cost.flops", "electra_tf.process_lock",
    "electra_tf.records.manifest", "electra_tf.signals",
    "electra_tf.tools.plot_curves", "electra_tf.reporting.curves",
    "electra_tf.reporting.metrics_log", "electra_tf.reporting.pace",
    "electra_tf.reporting.progress", "electra_tf.objectives.samples",
    "electra_tf.pretraining.timetable",
)


def ours(path):
    first = {layers.module_name(source).split(".")[0] for source in SOURCES}
    return {name for name in layers.imports(path) if name.split(".")[0] in first}


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_a_module_imports_from_lower_layers_or_its_own_package(path):
    importer = layers.unit(layers.module_name(path))
    wrong = {name: reason for name in ours(path)
             if (reason := layers.violation(importer, layers.unit(name)))}
    assert wrong == {}


def test_every_package_is_in_the_table():
    units = {layers.unit(layers.module_name(path)) for path in SOURCES
             if path.parts[0] == "electra_tf"} - {"electra_tf"}
    assert units <= layers.LEVEL.keys()


@pytest.mark.parametrize(("importer", "imported"), [
    ("electra_tf.config", "electra_tf.records"),  # upwards
    ("electra_tf.input", "electra_tf.modeling"),  # sideways
    ("electra_tf.training", "data_prep"),
    ("electra_tf.training", "run_pretraining"),
    ("data_prep", "electra_tf.modeling"),
    ("data_prep", "electra_tf.config"),
    ("electra_tf.tools", "benchmarks"),
    ("data_prep", "benchmarks"),
    ("run_pretraining", "benchmarks"),
    ("electra_tf.tools", "experiments"),
    ("benchmarks", "experiments"),
])
def test_the_check_refuses(importer, imported):
    assert layers.violation(importer, imported)


@pytest.mark.parametrize(("importer", "imported"), [
    ("electra_tf.config", "electra_tf.command_line"),
    ("electra_tf.training", "electra_tf.config"),
    ("electra_tf.training", "electra_tf.training"),
    ("data_prep", "electra_tf.records"),
    ("run_pretraining", "electra_tf.training"),
    ("benchmarks", "electra_tf.training"),
    ("benchmarks", "benchmarks"),
    ("experiments", "electra_tf.finetuning"),
])
def test_the_check_allows(importer, imported):
    assert layers.violation(importer, imported) is None


def dotted(node):
    """`tf.random.normal` of an attribute's node, "" of anything else."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) and parts else ""


FORBIDDEN = {
    r"(tf|tensorflow)\.keras\b": "Keras 3; import tf_keras",
    r"(tf|tensorflow)\.random\.(?!stateless_|experimental(\.stateless_|\.index_shuffle|$))\w":
        "stateful randomness; use a stateless op keyed by (seed, step, stream, example)",
    r"tf\.raw_ops\.(Random|Truncated|Multinomial)": "stateful randomness",
    r"tf\.nn\.(experimental\.stateful_|dropout$)": "stateful randomness; modeling has dropout",
    r"(tf_keras\.|^)layers\.(Spatial|Alpha|Gaussian)?Dropout": "hidden generator state",
    r"(np|numpy)\.random\.(?!default_rng$|Generator$|Philox$|PCG64$)\w": "global generator",
    r"^random\.(?!Random$)\w": "global generator; use random.Random(seed)",
}


def forbidden(tree):
    """Lines of a module that break a rule, each with the reason."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            found += [(node.lineno, reason) for pattern, reason in FORBIDDEN.items()
                      if re.match(pattern, dotted(node)) and not isinstance(node.ctx, ast.Store)]
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names = [getattr(node, "module", None)] + [alias.name for alias in node.names]
            found += [(node.lineno, "Keras 3; import tf_keras") for name in names
                      if re.match(r"keras\b|tensorflow\.keras\b", name or "")]
        elif isinstance(node, ast.ExceptHandler):
            caught = ast.unparse(node.type) if node.type else "Exception"
            if re.search(r"\b(Base)?Exception\b", caught):
                found.append((node.lineno, "name the errors that are caught"))
    return found


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_a_module_has_no_forbidden_construct(path):
    assert forbidden(layers.tree(path)) == []


@pytest.mark.parametrize("line", [
    "x = tf.random.normal([2])", "tf.random.set_seed(1)", "g = tf.random.Generator.from_seed(1)",
    "tf.nn.dropout(x, 0.1)", "tf_keras.layers.Dropout(0.1)", "np.random.rand()",
    "random.shuffle(x)", "import keras", "from keras import ops", "from tensorflow.keras import x",
    "l = tf.keras.layers", "try: f()\nexcept Exception: pass", "try: f()\nexcept: pass",
    "try: f()\nexcept (OSError, Exception): pass",
])
def test_the_check_finds(line):
    assert forbidden(ast.parse(line))


@pytest.mark.parametrize("line", [
    "x = tf.random.stateless_uniform([2], seed)", "import tf_keras", "random.Random(1).shuffle(x)",
    "tf.random.experimental.index_shuffle(0, s, 9)", "np.random.default_rng(0)",
    "try: f()\nexcept OSError: pass", "self.random.draw()",
])
def test_the_check_lets_pass(line):
    assert forbidden(ast.parse(line)) == []


def test_packages_are_empty_and_no_file_is_a_drawer():
    assert [str(path) for path in SOURCES
            if path.name == "__init__.py" and (layers.ROOT / path).read_text().strip()] == []
    assert [str(path) for path in SOURCES
            if path.stem in ("utils", "util", "common", "helpers", "misc")] == []


def test_modules_that_need_no_tensorflow_do_not_import_it():
    program = (
        "import importlib, sys\n"
        f"for name in {LIGHT!r}:\n"
        "    importlib.import_module(name)\n"
        "    heavy = {'tensorflow', 'tf_keras', 'matplotlib'} & set(sys.modules)\n"
        "    assert not heavy, (name, heavy)\n")
    done = subprocess.run([sys.executable, "-c", program], cwd=layers.ROOT, capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr
