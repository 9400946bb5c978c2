"""No file of the project holds a key, a token or a password."""

import re
import subprocess

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


def project_files():
    """Tracked files and new ones that git doesn't ignore; everything where there is no git."""
    done = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=sources.ROOT, capture_output=True, check=False)
    names = done.stdout.decode().split("\0")
    paths = [sources.ROOT / name for name in names if name] if done.returncode == 0 else [
        path for path in sources.ROOT.rglob("*")
        if not any(part.startswith(".venv") for part in path.parts)]
    return [path for path in paths if path.is_file()]


def test_no_file_holds_a_secret():
    files = project_files()
    assert len(files) > 100
    assert [(str(path.relative_to(sources.ROOT)), found.start()) for path in files
            if (found := SECRETS.search(path.read_bytes()))] == []


def test_the_check_finds_keys_and_lets_words_pass():
    secrets = (  # In two parts, so that this file holds none.
        ("-----BEGIN RSA ", "PRIVATE KEY-----"), ("AKIA", "ABCDEFGHIJKLMNOP"), ("AIza", "x" * 35),
        ("ghp_", "a1" * 18), ("github_pat_", "a1" * 30), ("glpat-", "x" * 20), ("hf_", "x" * 34),
        ("sk-ant-", "x-1" * 20), ("pypi-AgE", "x" * 60), ("xoxb-", "1" * 12),
        ("eyJhbGciOiJIUzI1NiJ9", ".eyJzdWIiOiIxMjM0In0.x"),
        ("https://name:", "password@example.org/simple"))
    assert [one for one in secrets if not SECRETS.search(f"key = '{''.join(one)}'".encode())] == []
    words = ("https://example.org:8501/v1/models/a@b", "hf_config", "git@github.com:owner/name")
    assert [word for word in words if SECRETS.search(word.encode())] == []
