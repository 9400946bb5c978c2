"""Forbidden constructs and light imports; lint-imports checks the layers."""

import ast
import re

from tests.support import python_process, sources

SOURCES = sources.sources()

# Modules that must start without the seconds of TensorFlow, Beam and matplotlib.
LIGHT = (
    "electra_tf.apps.tools.plot_curves", "electra_tf.config.overrides",
    "electra_tf.config.pretraining", "electra_tf.config.runtime", "electra_tf.data.manifest",
    "electra_tf.finetuning.command", "electra_tf.modeling.flops",
    "electra_tf.core.atomic_file", "electra_tf.core.command_line",
    "electra_tf.core.signals", "electra_tf.pretraining.command",
    "electra_tf.reporting.plots", "electra_tf.reporting.metrics_log",
    "electra_tf.reporting.progress", "electra_tf.reporting.samples", "data_prep.packing",
    "data_prep.record_builder", "data_prep.sources.registry", "data_prep.vocabulary_learner",
)


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
    violations = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            violations += [(node.lineno, reason) for pattern, reason in FORBIDDEN.items()
                           if re.match(pattern, dotted(node))
                           and not isinstance(node.ctx, ast.Store)]
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names = [getattr(node, "module", None)] + [alias.name for alias in node.names]
            violations += [(node.lineno, "Keras 3; import tf_keras") for name in names
                           if re.match(r"keras\b|tensorflow\.keras\b", name or "")]
        elif isinstance(node, ast.ExceptHandler):
            caught = ast.unparse(node.type) if node.type else "Exception"
            if re.search(r"\b(Base)?Exception\b", caught):
                violations.append((node.lineno, "name the errors that are caught"))
    return violations


def test_no_module_has_a_forbidden_construct():
    violations = {str(path): forbidden(sources.tree(path)) for path in SOURCES}
    assert {path: lines for path, lines in violations.items() if lines} == {}


def test_the_check_finds_them_and_lets_the_rest_pass():
    broken = (
        "x = tf.random.normal([2])", "tf.random.set_seed(1)", "tf.random.Generator.from_seed(1)",
        "tf.nn.dropout(x, 0.1)", "tf_keras.layers.Dropout(0.1)", "np.random.rand()",
        "random.shuffle(x)", "import keras", "from tensorflow.keras import x",
        "l = tf.keras.layers", "try: f()\nexcept Exception: pass", "try: f()\nexcept: pass",
        "try: f()\nexcept (OSError, Exception): pass")
    kept = (
        "x = tf.random.stateless_uniform([2], seed)", "random.Random(1).shuffle(x)",
        "tf.random.experimental.index_shuffle(0, s, 9)", "np.random.default_rng(0)",
        "try: f()\nexcept OSError: pass", "self.random.draw()", "import tf_keras")
    assert [line for line in broken if not forbidden(ast.parse(line))] == []
    assert [line for line in kept if forbidden(ast.parse(line))] == []


def test_packages_are_empty_and_names_tell_files_and_classes_apart():
    assert [str(path) for path in SOURCES
            if path.name == "__init__.py" and (sources.ROOT / path).read_text().strip()
            ] == ["electra_tf/__init__.py"]
    assert [str(path) for path in SOURCES
            if path.stem in ("utils", "util", "common", "helpers", "misc")] == []
    classes = [node.name for path in SOURCES for node in ast.walk(sources.tree(path))
               if isinstance(node, ast.ClassDef)]
    assert [name for name in classes if classes.count(name) > 1] == []


def test_modules_that_need_no_tensorflow_do_not_import_it():
    program = (
        "import importlib, sys\n"
        f"for name in {LIGHT!r}:\n"
        "    importlib.import_module(name)\n"
        "    heavy = {'tensorflow', 'tf_keras', 'matplotlib', 'apache_beam'} & set(sys.modules)\n"
        "    assert not heavy, (name, heavy)\n")
    python_process.run("-c", program)


def test_pre_training_imports_neither_keras_3_nor_what_only_evaluations_and_curves_need():
    python_process.run("-c", (
        "import sys\n"
        "from electra_tf.core import machine\n"
        "machine.configure_process()\n"
        "import electra_tf.pretraining.evaluation, electra_tf.pretraining.loop\n"
        "heavy = {'keras', 'sklearn', 'matplotlib'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"))
