"""Nothing that is read can run code: no pickles, no YAML with objects, no evaluated text."""

import re
import subprocess
import sys

from tests.support import sources

RULES = "S102,S301,S302,S307,S506"
"""Ruff's: exec, pickle and what wraps it, marshal, eval, yaml.load."""
OTHERS = re.compile(r"torch\.(jit\.)?load\((?!([^()]|\([^()]*\))*weights_only=True)"
                    r"|allow_pickle=(?!False)|^\s*(from|import) (joblib|cloudpickle|jsonpickle)\b",
                    re.MULTILINE)


def runs_code(*paths):
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--quiet", "--select",
         RULES, "--output-format=concise", *map(str, paths)], cwd=sources.ROOT,
        capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout.splitlines() + [f"{path}: {found.group()}" for path in paths
                                       for found in OTHERS.finditer(
                                           (sources.ROOT / path).read_text(encoding="utf-8"))]


def test_no_module_reads_what_may_hold_code():
    assert runs_code(*sources.sources()) == []


def test_the_check_finds_what_runs_code_and_lets_the_rest_pass(tmp_path):
    unsafe = ("import pickle; pickle.loads(b)", "import dill; dill.load(f)", "import joblib",
              "np.load(path, allow_pickle=trusted)", "torch.load(path)", "eval(text)",
              "torch.load(path, weights_only=False)", "import yaml; yaml.load(text, Loader)")
    safe = ("np.load(path, allow_pickle=False)", "model.eval()",
            "torch.load(path, weights_only=True)", "import yaml; yaml.safe_load(text)")
    for number, line in enumerate(unsafe + safe):
        (tmp_path / f"{number}.py").write_text(line + "\n")
    found = {int(re.search(r"(\d+)\.py:", line)[1]) for line in runs_code(*tmp_path.iterdir())}
    assert found == set(range(len(unsafe)))
