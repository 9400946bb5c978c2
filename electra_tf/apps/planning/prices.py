"""Prices, powers and utilisations of devices, and what electricity emits: a table users can edit.

`prices.yaml`, beside this file, is the table and says what its columns mean. A user's file of the
same form replaces sections of it. No number is there without a source and a date.
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
_DEVICE, _GRID, _OVERHEAD = "device ", "grid ", "electricity overhead"
_SOURCE, _DATE = "_source", "_date"
_NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?", re.ASCII)
_RANGES = {
    "dollars_per_hour": (0.0, 1e6), "watts": (0.0, 1e6), "utilization": (0.0, 1.0),
    "peak_teraflops": (0.0, 1e9), "grams_co2_per_kwh": (0.0, 1e4), "pue": (1.0, 10.0)}
"""Number -> what it lies between; the lower end is allowed for prices, emissions and the PUE."""
_MAY_BE_LEAST = ("dollars_per_hour", "grams_co2_per_kwh", "pue")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Quantity:
    """A number of the table and where it is from."""

    value: float
    source: str
    date: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Device:
    """One accelerator: how fast it is used, what it costs, what it draws."""

    name: str
    utilization: Quantity
    """Part of the peak that a step's matrix products reach, in (0, 1]."""
    dollars_per_hour: Quantity | None = None
    watts: Quantity | None = None
    peak_teraflops: Quantity | None = None
    """1e12 FLOP/s; None for a device that `cost.devices` has."""

    @property
    def precision(self) -> str:
        """What --precision=auto takes there: bfloat16 if it has units for it, else float32."""
        return "float32" if peak_flops(self.name, "bfloat16") is None else "bfloat16"

    @property
    def peak(self) -> float:
        """The peak rate that the utilisation is a part of, in FLOP/s."""
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
        """Returns a device by its name, of which case, "-" and "_" don't matter.

        Raises:
            UserError: the table doesn't have it.
        """
        found = self.devices.get(_key(name))
        if found is None:
            raise UserError(f"--devices: no device {shown(name)} in the table. There are: "
                            f"{', '.join(self.devices)}; add others by {FLAG}=FILE.")
        return found

    def grid(self, region: str) -> Quantity:
        """Returns what the electricity of a region emits; `UserError` for an unknown one."""
        found = self.grids.get(_key(region))
        if found is None:
            raise UserError(f"--region: no grid {shown(region)} in the table. There are: "
                            f"{', '.join(self.grids)}; add others by {FLAG}=FILE.")
        return found


def load(path: Path | None = None) -> Prices:
    """Returns the table, with the sections of a user's file in place of its own.

    Args:
        path: of the user's file; None for the table as it is.

    Raises:
        UserError: the file can't be read, is too large, is no such table, or has a section or a
            number that can't be.
    """
    sections = _read(TABLE)
    if path is not None:
        sections |= _read(path)
    devices = {name.removeprefix(_DEVICE): numbers for name, numbers in sections.items()
               if name.startswith(_DEVICE)}
    return Prices(
        devices={name: Device(name=name, **numbers) for name, numbers in devices.items()},
        grids={name.removeprefix(_GRID): numbers["grams_co2_per_kwh"]
               for name, numbers in sections.items() if name.startswith(_GRID)},
        pue=sections[_OVERHEAD]["pue"])


def _read(path: Path) -> dict[str, dict[str, Quantity]]:
    """Returns section -> number -> quantity of a file."""
    found = {}
    for title, fields in strict_yaml.read_sections(path, FLAG).items():
        place, section = f"{FLAG}={path}: {shown(title)[1:-1]}", _key(title)
        if section in found:
            raise UserError(f"{place} stands there twice.")
        allowed, needed = _numbers_of(section, place)
        numbers = _numbers(place, fields, allowed)
        for name in needed:
            if name not in numbers:
                raise UserError(f"{place}: {name} is missing.")
        device = section.removeprefix(_DEVICE)
        if section.startswith(_DEVICE) and "peak_teraflops" not in numbers and (
                peak_flops(device, "float32") is None):
            raise UserError(f"{place}: no peak rate is known of this device; add peak_teraflops, "
                            "its source and date.")
        found[section] = numbers
    return found


def _numbers_of(section: str, place: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the numbers that a section may have, and those that it must."""
    if section.startswith(_DEVICE) and section != _DEVICE:
        return ("dollars_per_hour", "watts", "utilization", "peak_teraflops"), ("utilization",)
    if section.startswith(_GRID) and section != _GRID:
        return ("grams_co2_per_kwh",), ("grams_co2_per_kwh",)
    if section == _OVERHEAD:
        return ("pue",), ("pue",)
    raise UserError(f"{place} is no section of the table: write `device NAME`, `grid NAME` or "
                    f"`{_OVERHEAD}`.")


def _numbers(place: str, fields: Mapping[str, str],
             allowed: tuple[str, ...]) -> dict[str, Quantity]:
    known = {f"{name}{end}" for name in allowed for end in ("", _SOURCE, _DATE)}
    for field in fields:
        if field not in known:
            raise UserError(f"{place}: unknown {shown(field)}. There are: {', '.join(allowed)}, "
                            f"each with {_SOURCE} and {_DATE}.")
    named = {name for name in allowed
             if not fields.keys().isdisjoint({name, f"{name}{_SOURCE}", f"{name}{_DATE}"})}
    numbers = {}
    for name in sorted(named):
        for field in (name, f"{name}{_SOURCE}", f"{name}{_DATE}"):
            if not fields.get(field, "").strip():
                raise UserError(f"{place}: {field} is missing; every number has a source and a "
                                "date.")
        numbers[name] = Quantity(value=_value(place, name, fields[name]),
                                 source=fields[f"{name}{_SOURCE}"], date=fields[f"{name}{_DATE}"])
    return numbers


def _value(place: str, name: str, text: str) -> float:
    least, most = _RANGES[name]
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not (least < value <= most or (value == least and name in _MAY_BE_LEAST)):
        span = f"{'[' if name in _MAY_BE_LEAST else '('}{least:g}, {most:,.0f}]"
        raise UserError(f"{place}: {name} must be a number in {span}. Received: {shown(text)}")
    return value


def _key(name: str) -> str:
    return " ".join(name.lower().replace("-", " ").replace("_", " ").split())
