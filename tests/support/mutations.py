"""Changes to files: of bytes, of lines, and of values within JSON."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

HOSTILE_JSON = (
    "null", "true", "false", "0", "1", "-1", "1.5", "1e999", "-0", "NaN", "Infinity", "10" * 2500,
    "1" + "0" * 30, "9223372036854775808", '""', '"x"', '"\\u0000"', '"\\ud800"', '"1"', '"NaN"',
    '"\\u202e"', '"../../etc/passwd"', '"' + "a" * 5000 + '"', "[]", "{}", "[[]]", '{"a": 1}',
    "[" * 2000 + "]" * 2000, "[1, 2, 3]", '{"a": 1, "a": 2}', '["x", null]')
"""Values as they stand in a file."""
HOSTILE_TEXT = (
    "", " ", "\0", "\n", "\t", "\r", "\x1b[2J", "\u202e", "\ufeff", "\ud800", "é", "中", "😀",
    "\u2028", "-1", "0", "010", "1e999", "NaN", "inf", "1_000", "0x10", "١",
    "9" * 5000, "a" * 5000,
    "../..", "/", "/dev/null", "/dev/zero", ".", "~", "null", "true", "none", "*", "[", "{", "'",
    '"', "\\", "%s", "{0}", "$HOME", "a=b", "--", "gs://x/y", "nosuch://x", "file:///", "://",
    "a\0b", "x" * 300)
"""What a person or a program may put where a word is expected."""


@st.composite
def bytes_changed(draw: st.DrawFn, content: bytes) -> bytes:
    """Content with one place cut, flipped, doubled, removed or written over."""
    start = draw(st.integers(0, max(len(content) - 1, 0)))
    length = draw(st.sampled_from([1, 2, 8, 64, 1000]))
    how = draw(st.sampled_from(["cut", "flip", "double", "remove", "write", "insert", "whole"]))
    if how == "cut":
        return content[:start]
    if how == "flip":
        flipped = bytes([content[start] ^ (1 << draw(st.integers(0, 7)))]) if content else b"x"
        return content[:start] + flipped + content[start + 1:]
    if how == "double":
        return content[:start + length] + content[start:]
    if how == "remove":
        return content[:start] + content[start + length:]
    more = draw(st.one_of(st.binary(max_size=16), st.sampled_from(
        [text.encode(errors="surrogatepass") for text in HOSTILE_TEXT])))
    if how == "whole":
        return draw(st.sampled_from([b"", more, b"\xef\xbb\xbf" + content, content + content,
                                     content.decode("latin-1").encode("utf-16")]))
    return content[:start] + more + content[start + (len(more) if how == "write" else 0):]


@st.composite
def json_changed(draw: st.DrawFn, tree: Any) -> bytes:
    """JSON with one value of another type, one key removed, doubled or added; or its bytes."""
    content = json.dumps(tree, indent=1)
    how = draw(st.sampled_from(
        ["value", "value", "value", "remove", "double", "add", "rename", "bytes"]))
    if how == "bytes":
        return draw(bytes_changed(content.encode()))
    mark = "\uf8ff\uf8ff"
    marked = json.loads(content)
    holder, key = draw(st.sampled_from(list(_places(marked))))
    value = json.dumps(holder[key])
    if how == "remove":
        del holder[key]
        return json.dumps(marked).encode()
    new = draw(st.sampled_from(HOSTILE_JSON))
    if how == "value" or isinstance(holder, list):
        holder[key] = mark
        return _placed(marked, mark, new)
    if how == "add":
        holder[mark] = mark
        name = draw(st.sampled_from(["surprise", "", "\\u0000", key.upper(), "__class__"]))
        return _placed(marked, mark, new, name)
    if how == "double":
        holder[mark] = mark
        return _placed(marked, mark, draw(st.sampled_from([value, new])), json.dumps(key)[1:-1])
    holder[f"{key}x"] = holder.pop(key)
    return json.dumps(marked).encode()


@st.composite
def json_lines_changed(draw: st.DrawFn, trees: Sequence[Any], pack: Callable = bytes) -> bytes:
    """Packed lines of JSON, one of them changed, or the bytes of all."""
    lines = [json.dumps(tree).encode() for tree in trees]
    number = draw(st.integers(0, len(lines) - 1))
    lines[number] = draw(json_line_changed(trees[number]))
    content = pack(b"\n".join([*lines, b""]))
    return draw(st.one_of(st.just(content), bytes_changed(content)))


def json_line_changed(tree: Any) -> st.SearchStrategy[bytes]:
    """`json_changed` on one line."""
    return json_changed(tree).map(lambda content: b"".join(content.split(b"\n")))


def _places(tree: Any) -> Any:
    """Yields every list or object with every index or key."""
    nodes = [tree]
    while nodes:
        node = nodes.pop()
        if isinstance(node, dict | list):
            for key in list(node if isinstance(node, dict) else range(len(node))):
                yield node, key
                nodes.append(node[key])


def _placed(tree: Any, mark: str, value: str, name: str = "") -> bytes:
    quoted = json.dumps(mark)
    text = json.dumps(tree, indent=1).replace(f"{quoted}: ", f'"{name}": ')
    return text.replace(quoted, value).encode()
