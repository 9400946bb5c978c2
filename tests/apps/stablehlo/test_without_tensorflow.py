"""What runs in the compile environment imports nothing that isn't installed there."""

import re

from tests.layering import sources

ENTRIES = ("electra_tf.apps.stablehlo.run_step", "electra_tf.apps.stablehlo.ahead_of_time",
           "benchmarks.accelerator.__main__", "benchmarks.accelerator.ours")


def test_the_commands_of_the_compile_environment_need_what_is_installed_there():
    text = (sources.ROOT / "requirements" / "compile.txt").read_text()
    installed = {{"absl-py": "absl"}.get(name, name.replace("-", "_"))
                 for name in re.findall(r"(?m)^([\w\-]+)==", text)}
    for entry in ENTRIES:
        # Elsewhere what is imported inside functions is for paths that are addresses.
        ours, libraries = sources.closure(entry, inside_functions=lambda name, entry=entry: (
            name == entry or name.startswith("electra_tf.apps.stablehlo.")))
        assert len(ours) > 10
        assert libraries <= installed, entry
    assert "tensorflow" in sources.closure("electra_tf.apps.stablehlo.lift")[1]
