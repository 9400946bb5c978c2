"""From FLOPs to hours, dollars, kWh and CO2, by devices of a stated peak and utilisation."""

import dataclasses

from electra_tf.apps.planning.prices import Device
from electra_tf.platform.errors import UserError

MOST_DEVICES = 1_000_000
_SECONDS_PER_HOUR = 3600


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bill:
    """What some work costs on one kind of device."""

    device: Device
    count: int
    utilization: float
    """Part of the peak, in (0, 1]."""
    hours: float
    """From start to end: the devices share the work without loss."""
    dollars: float | None
    """None where the price isn't known."""
    kilowatt_hours: float | None
    """Of the devices with the data centre's overhead, without the machines around them; None
    where the power isn't known."""
    kilograms_co2: float | None
    """Of the electricity alone, not of making the devices."""


def bill(products_flops: float, device: Device, *, count: int, utilization: float | None,
         pue: float, grams_co2_per_kwh: float) -> Bill:
    """Returns what some work costs.

    Args:
        products_flops: of its matrix products.
        device: that does it.
        count: how many of them, from 1.
        utilization: part of the peak that they reach, in (0, 1]; None for the table's.
        pue: power of the data centre over that of its computers.
        grams_co2_per_kwh: of the electricity.

    Raises:
        UserError: a count or a utilisation that can't be.
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
