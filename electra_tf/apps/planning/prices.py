"""Prices and powers of devices, emissions of electricity, and the bill of a computation.

The table is `prices.yaml` beside this file, which explains its fields. A user's file of the same
form replaces sections of it. Every number has a source and a date.
"""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import NamedTuple

from annotated_types import Interval

from electra_tf.modeling.flops import peak_flops
from electra_tf.platform import strict_yaml
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.settings import Setting
from electra_tf.platform.storage import Path

TABLE = pathlib.Path(__file__).with_name("prices.yaml")
FLAG = "--prices"
_OVERHEAD = "electricity overhead"
_BOUNDS: Mapping[str, Mapping[str, Interval]] = {
    "device": {"utilization": Interval(gt=0, le=1), "dollars_per_hour": Interval(ge=0, le=1e6),
               "watts": Interval(gt=0, le=1e6), "peak_teraflops": Interval(gt=0, le=1e9)},
    "grid": {"grams_co2_per_kwh": Interval(ge=0, le=1e4)},
    _OVERHEAD: {"pue": Interval(ge=1, le=10)}}
"""Kind of section -> bounds of its numbers. The first number is required."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Quantity:
    """A number of the table with its source."""

    value: float
    source: str
    date: str

    @property
    def origin(self) -> str:
        """Returns the source with its date."""
        return f"{self.source} ({self.date})"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Device:
    """A kind of accelerator: its speed, price and power."""

    name: str
    utilization: Quantity
    """Fraction of the peak that a step's matmuls reach, in (0, 1]."""
    dollars_per_hour: Quantity | None = None
    watts: Quantity | None = None
    peak_teraflops: Quantity | None = None
    """1e12 FLOP/s; None for a device that `flops.PEAKS` lists."""

    @property
    def peak(self) -> float | None:
        """Returns the peak in FLOP/s of the type that --precision=auto takes; None if unknown."""
        if self.peak_teraflops is not None:
            return self.peak_teraflops.value * 1e12
        return peak_flops(self.name, "bfloat16") or peak_flops(self.name, "float32")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Prices:
    """The whole table."""

    devices: Mapping[str, Device]
    grids: Mapping[str, Quantity]
    """Region -> g CO2 per kWh."""
    pue: Quantity
    """Power of a data centre relative to that of its computers, 1 or more."""

    def device(self, name: str) -> Device:
        """Returns a device; `UserError` for an unknown name. Case, "-" and "_" are ignored."""
        return _named(self.devices, name, "--devices: no device")

    def grid(self, region: str) -> Quantity:
        """Returns the emissions of a region's electricity; `UserError` for an unknown region."""
        return _named(self.grids, region, "--region: no grid")


class Bill(NamedTuple):
    """The cost of a computation. A number is None if the table has no price or no power."""

    hours: float
    """Duration, if the devices share the work without loss."""
    dollars: float | None
    kilowatt_hours: float | None
    """Energy of the devices and the data centre, without host machines."""
    kilograms_co2: float | None
    """Emissions of the electricity, without those of manufacturing."""


def bill(flops: float, device: Device, *, count: int, utilization: float, pue: float,
         grams_co2_per_kwh: float) -> Bill:
    """Returns the cost of matmuls with `flops` FLOPs on `count` devices."""
    device_hours = flops / (device.peak * utilization) / 3600
    price, watts = device.dollars_per_hour, device.watts
    energy = None if watts is None else device_hours * watts.value * pue / 1000
    return Bill(device_hours / count, None if price is None else device_hours * price.value, energy,
                None if energy is None else energy * grams_co2_per_kwh / 1000)


def load(path: Path | None = None) -> Prices:
    """Returns the table, with the sections of a user's file in place of its own.

    Args:
        path: the user's file; None for the table alone.

    Raises:
        UserError: the file cannot be read, or has an unknown section or field, a number out of
            range, or a number without source and date.
    """
    sections = _read(TABLE) | ({} if path is None else _read(path))
    names = {kind: [key for key in sections if key.startswith(f"{kind} ")] for kind in _BOUNDS}
    return Prices(
        devices={(name := key.removeprefix("device ")): Device(name=name, **sections[key])
                 for key in names["device"]},
        grids={key.removeprefix("grid "): sections[key]["grams_co2_per_kwh"]
               for key in names["grid"]},
        pue=sections[_OVERHEAD]["pue"])


def _read(path: Path) -> dict[str, dict[str, Quantity]]:
    """Returns section -> field -> quantity."""
    found = {}
    for title, fields in strict_yaml.read_sections(path, FLAG).items():
        place, section = f"{FLAG}={path}: {shown(title)[1:-1]}", _key(title)
        kind = section if section == _OVERHEAD else section.partition(" ")[0]
        if kind not in _BOUNDS or kind == section != _OVERHEAD:
            raise UserError(f"{place} is not a section of the table; write `device NAME`, `grid "
                            f"NAME` or `{_OVERHEAD}`.")
        if section in found:
            raise UserError(f"{place} appears twice; remove one.")
        found[section] = _quantities(place, fields, _BOUNDS[kind])
        name = section.removeprefix("device ")
        if kind == "device" and Device(name=name, **found[section]).peak is None:
            raise UserError(f"{place}: the peak of this device is unknown; add peak_teraflops, "
                            "its source and date.")
    return found


def _quantities(place: str, fields: Mapping[str, str],
                bounds: Mapping[str, Interval]) -> dict[str, Quantity]:
    parts = {name: (name, f"{name}_source", f"{name}_date") for name in bounds}
    for field in fields:
        if field not in sum(parts.values(), ()):
            raise UserError(f"{place}: unknown {shown(field)}; allowed: {', '.join(bounds)}, each "
                            "with _source and _date.")
    found = {}
    for name, names in parts.items():
        if found and fields.keys().isdisjoint(names):
            continue
        for field in names:
            if not fields.get(field, "").strip():
                raise UserError(f"{place}: {field} is missing; every number needs a source and a "
                                "date.")
        setting = Setting(name=f"{place}: {name}", owner=Quantity, field="value", kind=float,
                          default=0.0, bounds=bounds[name], choices=())
        value, source, date = (fields[field] for field in names)
        found[name] = Quantity(value=setting.read(value), source=source, date=date)
        setting.check(found[name].value)
    return found


def _named(table: Mapping[str, Device | Quantity], name: str, problem: str) -> Device | Quantity:
    if _key(name) not in table:
        raise UserError(f"{problem} {shown(name)}; known: {', '.join(table)}. Add others by "
                        f"{FLAG}=FILE.")
    return table[_key(name)]


def _key(name: str) -> str:
    return " ".join(name.lower().replace("-", " ").replace("_", " ").split())
