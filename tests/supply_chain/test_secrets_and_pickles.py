"""No file of the project has a secret, and no module runs code that it reads."""

import re
import subprocess
import sys

from tests.support import sources

# Prefixes are the issuers' own, made to be found. Lengths are the shortest that they give out.
SECRETS = re.compile(rb"""(?x)
    -----BEGIN\ [A-Z ]*PRIVATE\ KEY
    | "private_key"\s*:\s*"-
    | \b(AKIA|ASIA)[0-9A-Z]{16}\b                      # Amazon
    | \bAIza[\w-]{35}                                  # Google
    | \bya29\.[\w-]{20}                                # Google, OAuth
    | \b(gh[pousr]_[A-Za-z0-9]{36}|github_pat_\w{22})  # GitHub
    | \bglpat-[\w-]{20}                                # GitLab
    | \bhf_[A-Za-z]{34}                                # Hugging Face
    | \bsk-(ant-|proj-)?[\w-]{32}                      # of language models
    | \bpypi-AgE[\w-]{50}                              # PyPI
    | \bxox[abeprs]-[\w-]{10}                          # Slack
    | \beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.                 # a signed JSON web token
    | ://[^\s/:@"'{$]+:[^\s/:@"'{$]+@[\w.-]+           # a password in an address
""")
RULES = "S102,S301,S302,S307,S506"
"""Ruff's: exec, pickle and what wraps it, marshal, eval, yaml.load."""
OTHERS = re.compile(r"torch\.(jit\.)?load\((?!([^()]|\([^()]*\))*weights_only=True)"
                    r"|allow_pickle=(?!False)|^\s*(from|import) (joblib|cloudpickle|jsonpickle)\b",
                    re.MULTILINE)


def project_files():
    """Tracked files and new ones that git doesn't ignore; all of them where there is no git."""
    done = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=sources.ROOT, capture_output=True, check=False)
    names = done.stdout.decode().split("\0")
    paths = [sources.ROOT / name for name in names if name] if done.returncode == 0 else [
        path for path in sources.ROOT.rglob("*")
        if not any(part.startswith(".venv") for part in path.parts)]
    return [path for path in paths if path.is_file()]


def test_no_file_has_a_secret():
    files = project_files()
    assert len(files) > 100
    assert [(str(path.relative_to(sources.ROOT)), match.start()) for path in files
            if (match := SECRETS.search(path.read_bytes()))] == []


def test_keys_are_detected_and_words_are_not():
    secrets = (  # In two parts, so that this file has none.
        ("-----BEGIN RSA ", "PRIVATE KEY-----"), ("AKIA", "ABCDEFGHIJKLMNOP"), ("AIza", "x" * 35),
        ("ghp_", "a1" * 18), ("github_pat_", "a1" * 30), ("glpat-", "x" * 20), ("hf_", "x" * 34),
        ("sk-ant-", "x-1" * 20), ("pypi-AgE", "x" * 60), ("xoxb-", "1" * 12),
        ("eyJhbGciOiJIUzI1NiJ9", ".eyJzdWIiOiIxMjM0In0.x"),
        ("https://name:", "password@example.org/simple"))
    words = ("https://example.org:8501/v1/models/a@b", "hf_config", "git@github.com:owner/name")
    assert all(SECRETS.search(f"key = '{first}{last}'".encode()) for first, last in secrets)
    assert not any(SECRETS.search(word.encode()) for word in words)


def unsafe_lines(*paths):
    """Returns the places where these modules may run code that they read."""
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--quiet", "--select",
         RULES, "--output-format=concise", *map(str, paths)], cwd=sources.ROOT,
        capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout.splitlines() + [f"{path}: {match.group()}" for path in paths
                                       for match in OTHERS.finditer(
                                           (sources.ROOT / path).read_text(encoding="utf-8"))]


def test_no_module_runs_code_that_it_reads():
    assert unsafe_lines(*sources.sources()) == []


def test_unsafe_lines_are_detected_and_safe_ones_are_not(tmp_path):
    unsafe = ("import pickle; pickle.loads(b)", "import dill; dill.load(f)", "import joblib",
              "np.load(path, allow_pickle=trusted)", "torch.load(path)", "eval(text)",
              "torch.load(path, weights_only=False)", "import yaml; yaml.load(text, Loader)")
    safe = ("np.load(path, allow_pickle=False)", "model.eval()",
            "torch.load(path, weights_only=True)", "import yaml; yaml.safe_load(text)")
    for number, line in enumerate(unsafe + safe):
        (tmp_path / f"{number}.py").write_text(line + "\n")
    lines = unsafe_lines(*tmp_path.iterdir())
    assert {int(re.search(r"(\d+)\.py:", line)[1]) for line in lines} == set(range(len(unsafe)))
