"""What may stand behind --input.

    input   = entry ("," entry)*
    entry   = [source ":"] pattern ["#" field] [":" share]
    source  = one of the names in `registry.SOURCES`; plain text if there is none
    pattern = a path or URL, with * ? [...] and ** as the shell has them; a name for hf, tfds and
              embedded
    field   = the one that holds the text; jsonl, parquet, hf and tfds only
    share   = a number above 0; of every entry or of none

What can be read in two ways is refused, with both ways to write it.
"""

import dataclasses
import pathlib
import re
from collections.abc import Collection

from electra_tf.platform import storage
from electra_tf.platform.errors import UserError, shown

TEXT = "text"
_LARGEST_SHARE = 1_000_000
_SHARE = re.compile(r"(?P<rest>.*):(?P<share>\d+\.?\d*|\.\d+)", re.DOTALL)
_SOURCE = re.compile(r"(?P<source>[A-Za-z]\w*):(?!//)(?P<rest>.*)", re.DOTALL)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Entry:
    """One source of --input."""

    said: str
    """As it stands there, without the share."""
    source: str
    pattern: str
    field: str = ""
    """"": none was given."""
    share: float = 0.0
    """0: none was given."""
    named: bool = True
    """Whether `source` stands there."""


def entries_of(text: str, known: Collection[str], with_field: Collection[str]
               ) -> tuple[Entry, ...]:
    """Returns the entries of --input; a "#" and a field may follow the sources `with_field`.

    Raises:
        UserError: there is no entry, or one is ambiguous or incomplete.
    """
    entries = tuple(_entry(part, known, with_field)
                    for part in filter(None, map(str.strip, text.split(","))))
    if not entries:
        raise UserError("--input is empty; give file patterns separated by commas, or "
                        "embedded:python for the text that Python carries.")
    without = [entry for entry in entries if not entry.share]
    if 0 < len(without) < len(entries):
        raise UserError(f"--input: {shown(without[0].said)} has no share and others have; give "
                        f"every source one ({without[0].said}:0.5), or none.")
    bare = [entry for entry in without if not entry.named]
    if 0 < len(bare) < len(entries):
        raise UserError(
            f"--input: {shown(bare[0].said)} stands beside a source with a name and has none, so "
            f"it could belong to either; write text:{bare[0].said} or another source's name.")
    said = [entry.said for entry in entries]
    twice = [one for one in said if said.count(one) > 1]
    if twice and not bare:
        raise UserError(f"--input names {shown(twice[0])} twice, and its documents would be read "
                        "twice; name it once.")
    return entries


def _entry(text: str, known: Collection[str], with_field: Collection[str]) -> Entry:
    said, share = _without_share(text, known)
    found = _SOURCE.fullmatch(said)
    if found is None or (found["source"] not in known and storage.matching(said)):
        return Entry(said=said, source=TEXT, pattern=said, share=share, named=False)
    source, pattern = found["source"], found["rest"]
    if source not in known:
        raise UserError(f"--input: no file matches {shown(said)}, and {shown(source)} is no "
                        f"source; the sources are {', '.join(known)}.")
    if _exists(said):
        raise UserError(f"--input: {shown(said)} is a file here and could name a source too; "
                        f"write text:{said}, or {source}:./{pattern} for the source.")
    field = ""
    if source in with_field and "#" in pattern:
        pattern, _, field = pattern.rpartition("#")
        if not field:
            raise UserError(f"--input: no name stands behind the # of {shown(said)}.")
    if not pattern:
        raise UserError(f"--input: nothing stands behind {source}: in {shown(text)}; see "
                        "docs/how_to/data.md.")
    return Entry(said=said, source=source, pattern=pattern, field=field, share=share)


def _without_share(text: str, known: Collection[str]) -> tuple[str, float]:
    found = _SHARE.fullmatch(text)
    if found is None:
        return text, 0.0
    rest, share = found["rest"], found["share"]
    if _exists(text) or rest in known or not rest:
        raise UserError(f"--input: {shown(text)} could be a path that ends with a number or a "
                        f"source with the share {share}; write ./PATH:1 for the path with a share, "
                        "or rename the file.")
    if not 0 < float(share) <= _LARGEST_SHARE:
        raise UserError(f"--input: a share must be in (0, {_LARGEST_SHARE}]. Received: "
                        f"{shown(text)}")
    return rest, float(share)


def _exists(name: str) -> bool:
    try:
        return not storage.is_remote(name) and pathlib.Path(name).exists()
    except (OSError, ValueError):  # Too long for a name, or NUL.
        return False
