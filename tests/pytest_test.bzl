"""Files of tests as Bazel's py_test."""

load("@rules_python//python:defs.bzl", "py_test")

# These read the checkout itself, which Bazel doesn't watch: they run there, every time.
_READ_THE_CHECKOUT = ("layering/", "supply_chain/")

def pytest_tests(files):
    """For every file a target of its quick tests, and one of its slow ones that runs alone.

    Args:
      files: paths relative to the package.
    """
    for file in files:
        tags = ["external", "local"] if file.startswith(_READ_THE_CHECKOUT) else []
        _pytest(file[:-len(".py")], file, "not slow", tags = tags, timeout = "long")
        _pytest(file[:-len(".py")] + ".slow", file, "slow", tags = tags + ["exclusive", "slow"], timeout = "eternal")

def _pytest(name, file, marks, **kwargs):
    py_test(
        name = name,
        srcs = ["run_pytest.py"],
        main = "run_pytest.py",
        args = [native.package_name() + "/" + file, "-m", "'%s'" % marks],
        deps = [":support"],
        **kwargs
    )
