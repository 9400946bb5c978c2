"""Writes the BUILD files from the imports and the table of layers: `make build-files`.

Their `visibility` says in Bazel's terms what `layers.py` says in Python's; a test compares both.
"""

import functools
import pathlib

from tests.layering import layers, program_targets, starlark, targets_of_tests

HEADER = "# Written by `make build-files` from the imports and tests/layering/layers.py.\n"

_ROOT, _TESTS = pathlib.Path("BUILD"), pathlib.Path("tests/BUILD")


@functools.cache
def expected() -> dict[pathlib.Path, str]:
    """Returns the text of every BUILD file, by path relative to the root."""
    files = program_targets.files() | targets_of_tests.files()
    files[_ROOT] += _exports()
    files[_TESTS].append('exports_files(["run_pytest.py"])\n')
    return {path: "\n".join([HEADER, *statements]) for path, statements in files.items()}


def present() -> set[pathlib.Path]:
    """Returns the BUILD files that are there, by path relative to the root."""
    folders = {path.parts[0] for path in expected()} - {"BUILD"}
    found = (path for folder in folders for path in (layers.ROOT / folder).rglob("BUILD"))
    return {_ROOT, *(path.relative_to(layers.ROOT) for path in found)}


def _exports() -> list[str]:
    """What is no source: the locks of Bazel's hubs, and what tests read."""
    read = {name.removeprefix("//:") for names in targets_of_tests.DATA.values()
            for name in names if name.startswith("//:")}
    return [
        'exports_files(["requirements/dev.lock", "requirements/program.lock"])\n',
        starlark.call("exports_files", srcs=sorted({"pyproject.toml", *read}),
                      visibility=["//tests:__subpackages__"])]


def main() -> None:
    """Writes the files, and removes those of packages that are gone."""
    texts = expected()
    for path in sorted(present() - texts.keys()):
        (layers.ROOT / path).unlink()
        print(f"removed {path}")
    for path, text in texts.items():
        (layers.ROOT / path).write_text(text, encoding="utf-8")
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
