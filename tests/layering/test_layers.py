"""The architecture, checked: layers, BUILD files, forbidden constructs, light imports."""

import ast
import pathlib
import re
import subprocess
import sys

import pytest

from tests.layering import build_files, layers

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


def test_build_files_say_what_the_imports_say():
    wrong = [str(path) for path, text in build_files.expected().items()
             if not (layers.ROOT / path).exists() or (layers.ROOT / path).read_text() != text]
    assert wrong == [], "run `make build-files` and commit what it wrote"


def visible_to(visibility, groups):
    """Package patterns that a target of this visibility is open to, includes resolved."""
    patterns = set()
    for label in visibility:
        name = label.removeprefix("//:")
        if name in groups:
            patterns |= set(groups[name].get("packages", ()))
            patterns |= visible_to([f"//{inner}" for inner in groups[name].get("includes", ())],
                                   groups)
        else:
            patterns.add(label.replace(":__subpackages__", "/..."))
    return patterns


def rules(path):
    """The calls of one BUILD file, as (kind, keyword arguments)."""
    calls = [node.value for node in ast.parse((layers.ROOT / path).read_text()).body
             if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]
    return [(call.func.id, {word.arg: ast.literal_eval(word.value) for word in call.keywords
                            if not isinstance(word.value, ast.Call)}) for call in calls]


def test_every_dependency_of_a_build_file_is_visible_to_it():
    parsed = {path: rules(path) for path in build_files.expected()}
    groups = {rule["name"]: rule for kind, rule in parsed[pathlib.Path("BUILD")]
              if kind == "package_group"}
    open_to, users = {}, []
    for path, calls in parsed.items():
        package = "" if str(path.parent) == "." else str(path.parent)
        for kind, rule in calls:
            if kind not in ("py_library", "py_binary"):
                continue
            short = package.rsplit("/", 1)[-1] == rule["name"]
            label = f"//{package}" if short else f"//{package}:{rule['name']}"
            open_to[label] = (package, visible_to(rule["visibility"], groups))
            users += [(package, label, dep) for dep in rule.get("deps", ()) if dep[0] == "/"]
    assert len(users) > 10
    hidden = []
    for package, label, dep in users:
        home, patterns = open_to[dep]
        seen = package == home or any(
            f"//{package}/".startswith(pattern.removesuffix("...")) if pattern.endswith("/...")
            else f"//{package}" == pattern for pattern in patterns)
        hidden += [] if seen else [(label, dep)]
    assert hidden == []


def pinned(requirements):
    return {re.split(r"[=<>\[]", line)[0].strip().lower().replace("-", "_")
            for line in (layers.ROOT / requirements).read_text().splitlines()
            if line.strip() and not line.startswith(("#", "-"))}


def test_what_we_import_is_pinned():
    assert set(build_files.EXTERNAL.values()) <= pinned("requirements.txt")
    assert pinned("requirements/peers.txt") >= build_files.PEERS
    known = build_files.EXTERNAL.keys() | build_files.PEERS | sys.stdlib_module_names
    known |= {layers.module_name(path).split(".")[0] for path in SOURCES}
    used = {name.split(".")[0] for path in SOURCES for name in layers.imports(path)}
    assert used <= known


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
