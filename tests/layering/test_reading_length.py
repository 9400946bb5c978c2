"""How much a newcomer reads: the algorithm itself, and all that a run of it imports.

Lines of code: blank lines, comments and docstrings don't count, for they are there to help.
"""

import ast
import io
import tokenize

import pytest

from tests.layering import layers

ENTRANCES = ("run_pretraining", "electra_tf.pretraining.setup",
             "electra_tf.pretraining.training_run", "electra_tf.pretraining.results",
             "electra_tf.objectives.electra")
"""Of a run: what the command imports once its flags are right."""
ALGORITHM = (
    "run_pretraining", "electra_tf.input", "electra_tf.optimization", "electra_tf.training.step",
    "electra_tf.training.parts", "electra_tf.objectives.objective",
    "electra_tf.objectives.electra", "electra_tf.objectives.masked_tokens",
    "electra_tf.pretraining.setup", "electra_tf.pretraining.training_run",
    "electra_tf.pretraining.loop", "electra_tf.pretraining.trainer", "electra_tf.modeling",
    "electra_tf.config")
"""What the method is made of, from the command to a matrix product."""
MOST_OF_THE_ALGORITHM = 3300
MOST_OF_A_RUN = 7300
MODULES = {layers.module_name(path): path for path in layers.sources()}


@pytest.mark.parametrize(("beginnings", "most"), [
    (ALGORITHM, MOST_OF_THE_ALGORITHM), (("",), MOST_OF_A_RUN)], ids=["algorithm", "all"])
def test_what_a_run_is_made_of_stays_short(beginnings, most):
    sizes = {name: code_lines(MODULES[name]) for name in imported_by(ENTRANCES)
             if name.startswith(beginnings)}
    longest = sorted(sizes, key=sizes.get, reverse=True)[:20]
    assert sum(sizes.values()) <= most, (
        f"{sum(sizes.values())} lines of code, the longest: "
        + ", ".join(f"{name} {sizes[name]}" for name in longest))


def imported_by(names):
    """All our modules that these import when they are imported, not when functions are called."""
    waiting, found = list(names), set()
    while waiting:
        name = waiting.pop()
        if name in MODULES and name not in found:
            found.add(name)
            waiting += layers.imports(MODULES[name], inside_functions=False)
    return found


def code_lines(path):
    lines = set()
    for token in tokenize.generate_tokens(
            io.StringIO((layers.ROOT / path).read_text()).readline):
        if token.type in (tokenize.OP, tokenize.NAME, tokenize.NUMBER, tokenize.STRING):
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(layers.tree(path)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(
                node.value.value, str):
            lines -= set(range(node.lineno, node.end_lineno + 1))
    return len(lines)


def test_lines_of_code_are_counted_without_words_about_them(tmp_path):
    (tmp_path / "one.py").write_text(
        '"""Words."""\n\n# More.\nLONG = (\n    1)  # Two lines.\n"""What it is."""\n'
        'def name():\n    """Words."""\n    return f"""a\n    b"""\n')
    assert code_lines(tmp_path / "one.py") == 5
