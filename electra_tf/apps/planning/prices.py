"""What devices cost and draw, what electricity emits, and the bill of some work.

`prices.yaml`, beside this file, is the table and says what its columns mean. A user's file of the
same form replaces sections of it. Every number has a source and a date.
"""

import dataclasses
import math
import pathlib
import re
from collections.abc import Mapping

from electra_tf.modeling.device_peaks import peak_flops
from electra_tf.platform import strict_yaml
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path

TABLE = pathlib.Path(__file__).with_name("prices.yaml")
FLAG = "--prices"
MOST_DEVICES = 1_000_000
_SECONDS_PER_HOUR = 3600
_DEVICE, _GRID, _OVERHEAD = "device ", "grid ", "electricity overhead"
_NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?", re.ASCII)
_RANGES = {
    "dollars_per_hour": (0.0, 1e6), "watts": (0.0, 1e6), "utilization": (0.0, 1.0),
    "peak_teraflops": (0.0, 1e9), "grams_co2_per_kwh": (0.0, 1e4), "pue": (1.0, 10.0)}
"""Number -> its bounds. The lower one is allowed for prices, emissions and the PUE."""
_MAY_BE_LEAST = ("dollars_per_hour", "grams_co2_per_kwh", "pue")
_NUMBERS = {_DEVICE: ("utilization", "dollars_per_hour", "watts", "peak_teraflops"),
            _GRID: ("grams_co2_per_kwh",), _OVERHEAD: ("pue",)}
"""Beginning of a section -> its numbers, the first of which it must have."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Quantity:
    """A number of the table with its source."""

    value: float
    source: str
    date: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Device:
    """One accelerator: how fast it is used, what it costs, what it draws."""

    name: str
    utilization: Quantity
    """Fraction of the peak that a step's matrix products reach, in (0, 1]."""
    dollars_per_hour: Quantity | None = None
    watts: Quantity | None = None
    peak_teraflops: Quantity | None = None
    """1e12 FLOP/s; None for a device that `device_peaks` has."""

    @property
    def precision(self) -> str:
        """The precision of --precision=auto there: bfloat16 if it has units for it, or float32."""
        return "float32" if peak_flops(self.name, "bfloat16") is None else "bfloat16"

    @property
    def peak(self) -> float | None:
        """The peak rate in FLOP/s that the utilization is a fraction of; None if unknown."""
        if self.peak_teraflops is not None:
            return self.peak_teraflops.value * 1e12
        return peak_flops(self.name, self.precision)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Prices:
    """The whole table."""

    devices: Mapping[str, Device]
    grids: Mapping[str, Quantity]
    """Region -> g CO2 per kWh."""
    pue: Quantity
    """Power of a data centre over that of its computers, 1 or more."""

    def device(self, name: str) -> Device:
        """Returns a device by its name; case, "-" and "_" don't matter.

        Raises:
            UserError: the table doesn't have it.
        """
        return _named(self.devices, name, "--devices: no device")

    def grid(self, region: str) -> Quantity:
        """Returns the emissions of a region's electricity; `UserError` for an unknown one."""
        return _named(self.grids, region, "--region: no grid")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bill:
    """What some work costs on one kind of device."""

    device: Device
    count: int
    utilization: float
    """Fraction of the peak, in (0, 1]."""
    hours: float
    """From start to end: the devices share the work without loss."""
    dollars: float | None
    """None where the price isn't known."""
    kilowatt_hours: float | None
    """Of the devices with the data centre's overhead, without the machines around them; None
    where the power isn't known."""
    kilograms_co2: float | None
    """Emissions of the electricity, without those of making the devices."""


def bill(products_flops: float, device: Device, *, count: int, utilization: float | None,
         pue: float, grams_co2_per_kwh: float) -> Bill:
    """Returns what some work costs.

    Args:
        products_flops: of its matrix products.
        device: that does it.
        count: how many of them, from 1.
        utilization: fraction of the peak that they reach, in (0, 1]; None for the table's.
        pue: power of the data centre over that of its computers.
        grams_co2_per_kwh: of the electricity.

    Raises:
        UserError: a count or a utilization out of range.
    """
    if not 1 <= count <= MOST_DEVICES:
        raise UserError(f"--count must be from 1 to {MOST_DEVICES:,}. Received: {count}")
    if utilization is None:
        utilization = device.utilization.value
    if not 0.0 < utilization <= 1.0:
        raise UserError("--utilization must be in (0, 1]: the part of the peak rate that is "
                        f"reached. Received: {utilization}")
    device_hours = products_flops / (device.peak * utilization) / _SECONDS_PER_HOUR
    energy = None if device.watts is None else device_hours * device.watts.value * pue / 1000
    return Bill(
        device=device, count=count, utilization=utilization, hours=device_hours / count,
        dollars=None if device.dollars_per_hour is None
        else device_hours * device.dollars_per_hour.value,
        kilowatt_hours=energy,
        kilograms_co2=None if energy is None else energy * grams_co2_per_kwh / 1000)


def load(path: Path | None = None) -> Prices:
    """Returns the table, with the sections of a user's file in place of its own.

    Args:
        path: of the user's file; None for the table as it is.

    Raises:
        UserError: the file can't be read, is too large, is no such table, or has a section or a
            number out of range.
    """
    sections = _read(TABLE) | ({} if path is None else _read(path))
    return Prices(
        devices={key.removeprefix(_DEVICE): Device(name=key.removeprefix(_DEVICE), **numbers)
                 for key, numbers in sections.items() if key.startswith(_DEVICE)},
        grids={key.removeprefix(_GRID): numbers["grams_co2_per_kwh"]
               for key, numbers in sections.items() if key.startswith(_GRID)},
        pue=sections[_OVERHEAD]["pue"])


def _read(path: Path) -> dict[str, dict[str, Quantity]]:
    """Returns section -> number -> quantity of a file."""
    found = {}
    for title, fields in strict_yaml.read_sections(path, FLAG).items():
        place, section = f"{FLAG}={path}: {shown(title)[1:-1]}", _key(title)
        if section in found:
            raise UserError(f"{place} stands there twice.")
        kind = next((kind for kind in _NUMBERS if section == kind == _OVERHEAD
                     or kind != _OVERHEAD and section.startswith(kind)), None)
        if kind is None:
            raise UserError(f"{place} is no section of the table: write `device NAME`, `grid "
                            f"NAME` or `{_OVERHEAD}`.")
        numbers = found[section] = _numbers(place, fields, _NUMBERS[kind])
        if kind == _DEVICE and Device(name=section.removeprefix(kind), **numbers).peak is None:
            raise UserError(f"{place}: no peak rate is known of this device; add peak_teraflops, "
                            "its source and date.")
    return found


def _numbers(place: str, fields: Mapping[str, str],
             allowed: tuple[str, ...]) -> dict[str, Quantity]:
    parts = {name: (name, f"{name}_source", f"{name}_date") for name in allowed}
    for field in fields:
        if field not in sum(parts.values(), ()):
            raise UserError(f"{place}: unknown {shown(field)}. There are: {', '.join(allowed)}, "
                            "each with _source and _date.")
    numbers = {}
    for name, names in parts.items():
        if name != allowed[0] and fields.keys().isdisjoint(names):
            continue
        for field in names:
            if not fields.get(field, "").strip():
                raise UserError(f"{place}: {field} is missing; every number has a source and a "
                                "date.")
        value, source, date = (fields[field] for field in names)
        numbers[name] = Quantity(value=_value(place, name, value), source=source, date=date)
    return numbers


def _value(place: str, name: str, text: str) -> float:
    least, most = _RANGES[name]
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not (least < value <= most or (value == least and name in _MAY_BE_LEAST)):
        span = f"{'[' if name in _MAY_BE_LEAST else '('}{least:g}, {most:,.0f}]"
        raise UserError(f"{place}: {name} must be a number in {span}. Received: {shown(text)}")
    return value


def _named(table: Mapping[str, Device | Quantity], name: str, problem: str) -> Device | Quantity:
    found = table.get(_key(name))
    if found is None:
        raise UserError(f"{problem} {shown(name)} in the table. There are: {', '.join(table)}; "
                        f"add others by {FLAG}=FILE.")
    return found


def _key(name: str) -> str:
    return " ".join(name.lower().replace("-", " ").replace("_", " ").split())
