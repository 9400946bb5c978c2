"""Calls as BUILD files have them."""


def call(kind: str, **attributes: str | bool | list[str]) -> str:
    """Returns a call in Bazel's language; an empty text or list is left out."""
    lines = [f"    {name} = {_value(value)},\n" for name, value in attributes.items()
             if value not in ("", [])]
    return f"{kind}(\n{''.join(lines)})\n"


def load(file: str, *names: str) -> str:
    """Returns the statement that makes rules of a file known."""
    return f"load({', '.join(_text(name) for name in (file, *names))})\n"


def _value(value: str | bool | list[str]) -> str:
    if isinstance(value, list) and len(value) > 1:
        return "[\n" + "".join(f"        {_text(item)},\n" for item in value) + "    ]"
    if isinstance(value, list):
        return f"[{_text(value[0])}]"
    return _text(value) if isinstance(value, str) else repr(value)


def _text(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
