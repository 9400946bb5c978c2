"""TensorFlow's StableHLO as a portable artefact: only ops that the standard promises to keep.

TensorFlow writes a module with ops and attributes of XLA's own dialect, `mhlo`, which no other
program has to understand. Of a training step these are two ops and some hints.
"""

import re
from collections.abc import Mapping

from tensorflow.compiler.mlir.stablehlo import stablehlo

from electra_tf.platform.errors import UserError

_MODULE = re.compile(r"(?m)^module @\S+(?: attributes (?P<attributes>\{.*\}))? \{$")
_ALIAS = re.compile(r"parameter_number = (\d+) : i64\}, output_index = array<i64: (\d+)>")
_HINTS = re.compile(r" \{mhlo\.frontend_attributes = \{[^{}]*\}\}")
_LOCATIONS = re.compile(r"(?m)^#loc.*\n")
# A copy is only a matter of memory. The error function is called as JAX's own exports call it.
_REPLACED = (
    (re.compile(r"= mhlo\.copy (%\S+) : (\S+)"), r"= stablehlo.reshape \1 : (\2) -> \2"),
    (re.compile(r"= mhlo\.erf (%\S+) : (\S+)"),
     r"= stablehlo.custom_call @mhlo.erf(\1) {mhlo.attributes = {}, mhlo.version = 1 : i64} : "
     r"(\2) -> \2"),
)
_FOREIGN = re.compile(r"= \"?((?:mhlo|chlo)\.\w+)")


def updates(module: str) -> Mapping[int, int]:
    """Returns number of a parameter -> number of the result that is its new value.

    Args:
        module: as TensorFlow writes it, with a resource variable's value as a parameter.
    """
    found = _MODULE.search(module)
    return {int(parameter): int(result)
            for parameter, result in _ALIAS.findall(found["attributes"] or "")}


def portable(module: str) -> bytes:
    """Returns a module as a portable artefact, which later versions of StableHLO read.

    Args:
        module: as TensorFlow writes it.

    Raises:
        UserError: it has an op that isn't StableHLO's.
    """
    text = _without_locations(module)
    text = _MODULE.sub("module @step {", text, count=1)
    text = _HINTS.sub("", text)
    for pattern, replacement in _REPLACED:
        text = pattern.sub(replacement, text)
    foreign = _FOREIGN.search(text)
    if foreign:
        raise UserError(f"the step has the op {foreign[1]}, which StableHLO doesn't have, so it "
                        "can't be written for other compilers.")
    return stablehlo.serialize_portable_artifact_str(text, stablehlo.get_current_version())


def _without_locations(module: str) -> str:
    """Removes where in Python every op comes from: half of the text, another on every machine."""
    text = _LOCATIONS.sub("", module)
    kept, start = [], 0
    while (place := text.find(" loc(", start)) >= 0:
        kept.append(text[start:place])
        start = _closing(text, place + len(" loc("))
    return "".join(kept) + text[start:]


def _closing(text: str, place: int) -> int:
    """Returns the place after the bracket that closes the one before `place`."""
    depth, quoted = 1, False
    while depth:
        if text[place] == '"':
            quoted = not quoted
        elif not quoted:
            depth += {"(": 1, ")": -1}.get(text[place], 0)
        place += 1
    return place
