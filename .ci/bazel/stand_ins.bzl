"""What MODULE.bazel fetches, from this machine instead: for Bazel before 7, without a network."""

_PYTHON = """\
load("@bazel_tools//tools/python:toolchain.bzl", "py_runtime_pair")

py_runtime(name = "runtime", interpreter = "python", python_version = "PY3")

py_runtime_pair(name = "runtimes", py3_runtime = ":runtime")

toolchain(
    name = "toolchain",
    toolchain = ":runtimes",
    toolchain_type = "@bazel_tools//tools/python:toolchain_type",
)
"""

# Sources are links: without PYTHONSAFEPATH Python looks for modules beside the file that a script's
# link leads to, in the checkout, where there are also those that a target doesn't declare.
_INTERPRETER = """\
#!/bin/sh
PYTHONSAFEPATH=1 exec {} "$@"
"""

def _native_rules(ctx):
    ctx.file("WORKSPACE")
    ctx.file(ctx.attr.folder + "/BUILD")
    ctx.file(ctx.attr.folder + "/defs.bzl", "".join(["{0} = native.{0}\n".format(rule) for rule in ctx.attr.rules]))

native_rules = repository_rule(
    doc = "A repository whose rules are those built into Bazel before 8.",
    implementation = _native_rules,
    attrs = {"folder": attr.string(), "rules": attr.string_list()},
)

def _empty_targets(ctx):
    ctx.file("WORKSPACE")
    ctx.file("BUILD", "".join([
        'filegroup(name = "%s", visibility = ["//visibility:public"])\n' % name
        for name in ctx.attr.names
    ]))

empty_targets = repository_rule(
    doc = "A repository of targets that are named somewhere and hold nothing.",
    implementation = _empty_targets,
    attrs = {"names": attr.string_list()},
)

def _environment_python(ctx):
    python = ctx.path("%s/.venv/bin/python" % ctx.path(Label("//:WORKSPACE")).dirname)
    if not python.exists:
        fail("%s isn't there; run `make install`" % python)
    ctx.file("WORKSPACE")
    ctx.file("BUILD", _PYTHON)
    ctx.file("python", _INTERPRETER.format(python))

environment_python = repository_rule(
    doc = "The Python of .venv as a toolchain.",
    implementation = _environment_python,
)

def _environment_hub(ctx):
    ctx.file("WORKSPACE")
    for line in ctx.read(ctx.path(ctx.attr.lock)).split("\n"):
        if line[:1].isalnum():
            name = line.split("==")[0].split("[")[0].lower().replace("-", "_").replace(".", "_")
            ctx.file(name + "/BUILD", 'py_library(name = "%s", visibility = ["//visibility:public"])\n' % name)

environment_hub = repository_rule(
    doc = """A pip hub with the names of a lock, whose packages .venv holds.

    A target that names no package of the lock is refused; one that a target forgets to name is not,
    because all of .venv is on Python's path.
    """,
    implementation = _environment_hub,
    attrs = {"lock": attr.label(allow_single_file = True)},
)
