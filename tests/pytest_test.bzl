"""A file of tests as Bazel's py_test."""

load("@rules_python//python:defs.bzl", "py_test")

def pytest_test(name, deps, data = [], tags = []):
    """The quick tests of the file `name`.py: those without the mark "slow"."""
    _pytest(name, name + ".py", "not slow", deps, data = data, tags = tags, timeout = "long")

def slow_pytest_test(name, deps, data = [], tags = []):
    """The slow tests of a file, called `name` without "_slow": `bazel test --config=slow //...`.

    They run alone, as with `make test-slow`: some watch times and memory.
    """
    file = name[:-len("_slow")] + ".py"
    tags = tags + ["exclusive", "slow"]
    _pytest(name, file, "slow", deps, data = data, tags = tags, timeout = "eternal")

def _pytest(name, file, marks, deps, **kwargs):
    py_test(
        name = name,
        srcs = [file, "//tests:run_pytest.py"],
        main = "//tests:run_pytest.py",
        args = [native.package_name() + "/" + file, "-m", "'%s'" % marks],
        deps = depset(deps + ["//tests:run_pytest"]).to_list(),
        **kwargs
    )
