"""Small text files that tests write."""

from pathlib import Path


def write(path: Path, text: str) -> Path:
    """Writes a file, and makes the directories above it; returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
