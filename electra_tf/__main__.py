"""The program `electra COMMAND`; in a clone, `python -m electra_tf COMMAND`."""

import importlib
import sys

from electra_tf.core import command_line
from electra_tf.core.command_line import COMMANDS
from electra_tf.core.errors import shown
from electra_tf.core.settings import suggestion

SUMMARY = """ELECTRA in TensorFlow 2: pre-training, fine-tuning and serving.

    {program} COMMAND [FLAGS]
    {program} COMMAND --help

Commands:
"""


def run() -> None:
    """Runs a command, or lists the commands; an unknown one ends with exit status 2."""
    name, program = next(iter(sys.argv[1:]), ""), command_line.command("")
    if name in COMMANDS:
        del sys.argv[1]
        importlib.import_module(COMMANDS[name].module).run()
    if name and not name.startswith("-"):
        command_line.refuse(f"unknown command {shown(name)}.{suggestion(name, COMMANDS)} "
                            f"(`{program} --help` lists the commands.)")
    if not name:
        sys.argv.append("--help")
    command_line.run(lambda: None, groups={}, summary=SUMMARY.format(program=program) + "\n".join(
        f"  {name:<14} {command.purpose}" for name, command in COMMANDS.items()))


if __name__ == "__main__":
    run()
