"""Requirements and their locks."""

import re

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support import sources

FOLDER = sources.ROOT / "requirements"


def entries(path):
    """Requirement and options of every line, continued ones joined, without comments."""
    text = re.sub(r"(^|\s)#.*", "", path.read_text()).replace("\\\n", " ")
    parts = [line.partition(" --") for line in text.splitlines() if line.strip()]
    return [(Requirement(pin), f"{dashes}{options}".split()) for pin, dashes, options in parts]


def locked(name):
    """Version of every package that a lock installs on this platform."""
    return {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==")
            for pin, _ in entries(FOLDER / f"{name}.lock")
            if pin.marker is None or pin.marker.evaluate()}
