"""Writes the BUILD files from the imports and the table of layers: `make build-files`.

Their `visibility` says in Bazel's terms what `layers.py` says in Python's; a test compares both.
"""

import pathlib
import sys

from tests.layering import layers

_TOP = pathlib.Path("electra_tf")

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

# Import names of the peers' environment (requirements/peers.txt): the pip hub has none of them.
PEERS = frozenset({"tokenizers", "torch", "transformers"})

HEADER = "# Written by `make build-files` from the imports and tests/layering/layers.py.\n"
LOAD = 'load("@rules_python//python:defs.bzl", {})\n'


def expected() -> dict[pathlib.Path, str]:
    """Returns the text of every BUILD file, by path relative to the root."""
    folders = {path.parent for path in layers.sources()} - {pathlib.Path("."), _TOP}
    files = {folder / "BUILD": _package(folder) for folder in folders}
    tops = {pathlib.Path("."): _root(), _TOP: _top(), pathlib.Path("tests"): _tests()}
    return files | {folder / "BUILD": text for folder, text in tops.items()}


def _root() -> str:
    """The package groups, each the packages above a layer, and the scripts."""
    binaries = [
        _rule("py_binary", path.stem, [path], main=path.name, visibility=_visibility(path.stem))
        for path in layers.sources() if path.parent == pathlib.Path(".")]
    groups = [_group(level) for level in range(len(layers.LAYERS))]
    exports = 'exports_files(["requirements/program.lock"])\n'
    return "\n".join([HEADER, LOAD.format('"py_binary"') + "\n" + exports, *groups, *binaries])


def _group(level: int) -> str:
    if level == len(layers.LAYERS) - 1:
        packages = ["//", *(f"//{name}/..." for name in layers.BESIDE), "//tests/..."]
        includes = ""
    else:
        # electra_tf's own modules are targets of one package and see each other without a group.
        packages = [f"//{_folder(unit)}/..." for unit in layers.LAYERS[level + 1]
                    if not _is_module(unit)]
        includes = f'    includes = [":above_layer_{level + 1}"],\n'
    return (f'package_group(\n    name = "above_layer_{level}",\n{_list("packages", packages)}'
            f"{includes})\n")


def _top() -> str:
    modules = [path for path in layers.sources()
               if path.parent == _TOP and path.name != "__init__.py"]
    rules = [
        _rule("py_library", path.stem, [path], visibility=_visibility(layers.module_name(path)))
        for path in modules]
    return "\n".join([HEADER, LOAD.format('"py_library"'), *rules])


def _package(folder: pathlib.Path) -> str:
    paths = [path for path in layers.sources() if path.parent == folder]
    unit = layers.unit(layers.module_name(folder / "__init__.py"))
    rule = _rule("py_library", folder.name, paths, visibility=_visibility(unit))
    return "\n".join([HEADER, LOAD.format('"py_library"'), rule])


def _tests() -> str:
    return "\n".join([HEADER, LOAD.format('"py_library"'), (
        'py_library(\n    name = "tests",\n    testonly = True,\n'
        '    srcs = glob(["**/*.py"]),\n    data = glob(["**"], exclude = ["**/*.py"]),\n'
        '    visibility = ["//visibility:private"],\n)\n')])


def _visibility(unit: str) -> list[str]:
    if unit == "data_prep":
        return [f"//{user}:__subpackages__" for user in ("benchmarks", "data_prep", "tests")]
    if unit not in layers.LEVEL:
        return ["//tests:__subpackages__"]
    groups = [f"//:above_layer_{layers.LEVEL[unit]}"]
    if unit in layers.DATA_PREP_IMPORTS:
        groups.append("//data_prep:__subpackages__")
    return groups


def _rule(
    kind: str, name: str, paths: list[pathlib.Path], *, visibility: list[str], main: str = ""
) -> str:
    deps = sorted(set().union(*(_dependencies(path) for path in paths)))
    folder = layers.ROOT / paths[0].parent
    pages = sorted(page.name for kind in ("*.html", "*.yaml") for page in folder.glob(kind))
    return (f'{kind}(\n    name = "{name}",\n{_list("srcs", sorted(p.name for p in paths))}'
            + _list("data", pages)
            + (f'    main = "{main}",\n' if main else "")
            + f"{_list('visibility', visibility)}{_list('deps', deps)})\n")


def _dependencies(path: pathlib.Path) -> set[str]:
    here = _target(layers.module_name(path))
    return {_target(name) for name in layers.imports(path)
            if name.split(".")[0] not in sys.stdlib_module_names | PEERS} - {here}


def _target(module: str) -> str:
    first = module.split(".")[0]
    if first in EXTERNAL:
        return f"@pypi//{EXTERNAL[first]}"
    if first not in ("electra_tf", "data_prep", *layers.BESIDE):
        return f"//:{first}"
    unit = layers.unit(module)
    folder = _folder(unit)
    return f"//electra_tf:{folder.name}" if _is_module(unit) else f"//{folder}"


def _folder(unit: str) -> pathlib.Path:
    return pathlib.Path(*unit.split("."))


def _is_module(unit: str) -> bool:
    return (layers.ROOT / _folder(unit)).with_suffix(".py").exists()


def _list(name: str, values: list[str]) -> str:
    if not values:
        return ""
    if len(values) == 1:
        return f'    {name} = ["{values[0]}"],\n'
    return f"    {name} = [\n" + "".join(f'        "{value}",\n' for value in values) + "    ],\n"


if __name__ == "__main__":
    for relative, text in expected().items():
        (layers.ROOT / relative).write_text(text, encoding="utf-8")
        print(f"wrote {relative}")
