"""What runs in the compile environment imports nothing that isn't installed there."""

import re
import sys

from tests.layering import layers

ENTRIES = ("electra_tf.apps.stablehlo.run_step", "electra_tf.apps.stablehlo.ahead_of_time",
           "benchmarks.accelerator.__main__", "benchmarks.accelerator.ours")
PATHS = {layers.module_name(path): path for path in layers.sources()}


def installed():
    text = (layers.ROOT / "requirements" / "compile.txt").read_text()
    names = re.findall(r"(?m)^([\w\-]+)==", text)
    return {{"absl-py": "absl"}.get(name, name) for name in names}


def reached(entry):
    """Every module of ours that importing one imports, and what else they import at once."""
    open_modules, ours, others = [entry], set(), set()
    while open_modules:
        module = open_modules.pop()
        if module in ours:
            continue
        ours.add(module)
        # Elsewhere what is imported inside functions is for paths that are addresses.
        inside = module == entry or module.startswith("electra_tf.apps.stablehlo.")
        for name in layers.imports(PATHS[module], inside_functions=inside):
            if name in PATHS:
                open_modules.append(name)
            else:
                others.add(name.split(".")[0])
    return ours, others - sys.stdlib_module_names


def test_the_commands_of_the_compile_environment_need_what_is_installed_there():
    for entry in ENTRIES:
        ours, others = reached(entry)
        assert len(ours) > 10
        assert others <= installed()


def test_the_other_half_is_seen_to_need_tensorflow():
    assert "tensorflow" in reached("electra_tf.apps.stablehlo.lift")[1]
