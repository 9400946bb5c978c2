"""BUILD names files that exist and packages that the locks install."""

from packaging.utils import canonicalize_name

from tests.support import sources
from tests.support.locks import locked


def targets():
    """Returns name -> attributes of the targets of BUILD, whose language is a part of Python."""
    found = {}

    def glob(patterns, allow_empty=False):
        files = [str(path.relative_to(sources.ROOT)) for pattern in patterns
                 for path in sources.ROOT.glob(pattern)]
        assert files or allow_empty, patterns
        return files

    def rule(name, **attributes):
        found[name] = attributes

    names = {name: rule for name in ("py_binary", "py_library", "py_test")}
    ignored = {name: lambda *_, **__: None for name in ("load", "package", "exports_files")}
    exec((sources.ROOT / "BUILD").read_text(encoding="utf-8"), names | ignored | {"glob": glob})
    return found


def test_sources_and_dependencies_of_targets_exist():
    known = targets()
    packages = {"pypi": locked("program"), "pypi_dev": locked("dev")}
    for target in known.values():
        for file in (*target["srcs"], *target.get("data", ())):
            assert (sources.ROOT / file).exists(), file
        for label in target["deps"]:
            hub, _, name = label.removeprefix("@").partition("//")
            assert name in known if label.startswith(":") and (
                name := label[1:]) else canonicalize_name(name) in packages[hub], label
    assert {"run_pretraining", "run_finetuning", "electra_tf", "data_prep", "tests"} <= known.keys()
