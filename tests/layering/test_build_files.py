"""The BUILD files: true to the sources, and no dependency that Bazel would refuse."""

import ast
import collections
import graphlib
import pathlib
import re
import sys

import pytest

from tests.layering import build_files, labels, layers

LIBRARIES = ("py_library", "py_binary", "pytest_test", "slow_pytest_test")


def test_build_files_say_what_the_imports_say():
    wrong = [str(path) for path, text in build_files.expected().items()
             if not (layers.ROOT / path).exists() or (layers.ROOT / path).read_text() != text]
    assert wrong == [], "run `make build-files` and commit what it wrote"


def test_there_are_no_others():
    assert build_files.present() == build_files.expected().keys()


def calls():
    """The calls of all BUILD files, as (package, kind, keyword arguments)."""
    for path in sorted(build_files.present()):
        package = "" if str(path.parent) == "." else str(path.parent)
        for node in ast.parse((layers.ROOT / path).read_text()).body:
            if isinstance(node.value.func, ast.Name):
                yield package, node.value.func.id, {
                    word.arg: ast.literal_eval(word.value) for word in node.value.keywords}


CALLS = list(calls())


def label(package, name):
    return f"//{package}" if package.rsplit("/", 1)[-1] == name else f"//{package}:{name}"


def files_of(*kinds):
    """How often a file is a source of a rule of these kinds."""
    return collections.Counter(
        pathlib.Path(package, source) for package, kind, rule in CALLS if kind in kinds
        for source in rule.get("srcs", [f"{rule['name'].removesuffix('_slow')}.py"]))


def test_every_file_of_the_program_is_in_one_library_or_is_a_script():
    sources = {path for path in layers.sources() if path != pathlib.Path("electra_tf/__init__.py")}
    scripts = {path for path in sources if len(path.parts) == 1}
    libraries = files_of("py_library")
    assert sources - libraries.keys() == scripts
    assert set(libraries.values()) == {1}


def test_every_file_of_tests_is_a_test_target_and_what_they_share_a_library():
    tests = {path for path in layers.tests() if path.name.startswith("test_")}
    marked = re.compile(r"^(@|pytestmark = \[?|.*marks=)pytest\.mark\.slow", re.M)
    slow = {path for path in tests if marked.search((layers.ROOT / path).read_text())}
    assert len(tests) > 200 and len(slow) > 15
    assert files_of("pytest_test").keys() | files_of("slow_pytest_test").keys() == tests
    assert files_of("slow_pytest_test").keys() == slow
    shared = {path for path in layers.tests() if path.name != "__init__.py"} - tests
    assert shared <= files_of("py_library").keys()


@pytest.mark.parametrize(("file", "targets"), [
    ("determinism/test_kill_and_resume.py", {"test_kill_and_resume_slow"}),
    ("training/test_step.py", {"test_step", "test_step_slow"}),
    ("records/test_shards.py", {"test_shards"}),
])
def test_slow_tests_are_targets_of_their_own(file, targets):
    folder, name = file.split("/")
    names = {rule["name"] for package, kind, rule in CALLS
             if package == f"tests/{folder}" and kind in LIBRARIES}
    assert names & {name[:-3], f"{name[:-3]}_slow"} == targets


def test_every_command_is_a_binary():
    commands = {path for path in layers.sources() if re.search(
        r"^if __name__ == .*\n(?:    .*\n)*    command_line\.run\(",
        (layers.ROOT / path).read_text(), re.M)}
    assert files_of("py_binary").keys() == commands
    names = {label(package, rule["name"]) for package, kind, rule in CALLS if kind == "py_binary"}
    assert names >= {
        "//:run_pretraining", "//:run_finetuning", "//data_prep:build_vocab",
        "//data_prep:build_pretraining_data", "//electra_tf/tools:serve", "//experiments:run",
        "//experiments:results", "//benchmarks/pretraining:__main__"}


def test_programs_in_texts_are_depended_on():
    assert {"//electra_tf:command_line", "//electra_tf:signals"} <= labels.named(
        pathlib.Path("tests/test_signals.py"))  # from electra_tf import command_line, signals
    assert "//electra_tf/tools" in labels.named(
        pathlib.Path("tests/reporting/test_curves.py"))  # -m electra_tf.tools.plot_curves


def used(rule):
    return [name for name in rule.get("deps", []) + rule.get("data", []) if name.startswith("//")]


def test_no_target_depends_on_itself():
    graphlib.TopologicalSorter({
        label(package, rule["name"]): used(rule)
        for package, kind, rule in CALLS if kind in LIBRARIES}).prepare()


def visible_to(visibility, groups):
    """Package patterns that a target of this visibility is open to, includes resolved."""
    patterns = set()
    for name in (entry.removeprefix("//:") for entry in visibility):
        if name in groups:
            patterns |= set(groups[name].get("packages", ()))
            patterns |= visible_to([f"//{inner}" for inner in groups[name].get("includes", ())],
                                   groups)
        else:
            patterns.add(name.replace(":__subpackages__", "/...").replace(":__pkg__", ""))
    return patterns


def test_every_dependency_of_a_build_file_is_visible_to_it():
    groups = {rule["name"]: rule for package, kind, rule in CALLS if kind == "package_group"}
    open_to, users = {}, []
    for package, kind, rule in CALLS:
        if kind in (*LIBRARIES, "filegroup"):
            name = label(package, rule["name"])
            open_to[name] = (package, visible_to(rule.get("visibility", []), groups))
            users += [(package, name, dep) for dep in used(rule)]
        elif kind == "exports_files":
            open_to |= {label(package, source): (package, visible_to(rule["visibility"], groups))
                        for source in rule.get("srcs", [])}
    assert len(users) > 1000
    hidden = []
    for package, name, dep in users:
        home, patterns = open_to[dep]
        seen = package == home or any(
            f"//{package}/".startswith(pattern.removesuffix("...")) if pattern.endswith("/...")
            else f"//{package}" == pattern for pattern in patterns)
        hidden += [] if seen else [(name, dep)]
    assert hidden == []


def pinned(requirements):
    return {re.split(r"[=<>\[]", line)[0].strip().lower().replace("-", "_")
            for line in (layers.ROOT / requirements).read_text().splitlines()
            if line.strip() and not line.startswith(("#", "-"))}


def test_what_we_import_is_pinned():
    assert set(labels.EXTERNAL.values()) <= pinned("requirements.txt")
    assert set(labels.EXTERNAL_OF_TESTS.values()) <= pinned("requirements/dev.txt")
    assert pinned("requirements/peers.txt") >= labels.PEERS
    assert pinned("requirements/compile.txt") >= labels.COMPILE
    known = labels.EXTERNAL.keys() | labels.PEERS | labels.COMPILE | sys.stdlib_module_names
    known |= {layers.module_name(path).split(".")[0] for path in layers.sources()}
    used = {name.split(".")[0] for path in layers.sources() for name in layers.imports(path)}
    assert used <= known
