"""The optional packages of the wheel: what provides a module that is not installed."""

EXTRAS = {
    "apache_beam": "data", "datasketch": "data", "mwparserfromhell": "data", "py3langid": "data",
    "pyarrow": "data", "zstandard": "data", "ai_edge_litert": "serving",
    "prometheus_client": "serving", "starlette": "serving", "uvicorn": "serving",
    "tensorflow_datasets": "tfds", "huggingface_hub": "hub", "official": "model-garden",
}
"""Module -> extra of electra-tf in pyproject.toml."""


def how_to_install(error: ModuleNotFoundError) -> str | None:
    """Returns one line with the pip command for a missing module; None if no extra has it.

    >>> how_to_install(ModuleNotFoundError(name="pyarrow.parquet"))
    "pyarrow is not installed: pip install 'electra-tf[data]'"
    """
    module = (error.name or "").partition(".")[0]
    if module not in EXTRAS:
        return None
    return f"{module} is not installed: pip install 'electra-tf[{EXTRAS[module]}]'"
