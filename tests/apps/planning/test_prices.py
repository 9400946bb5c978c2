"""The table of prices, files that replace parts of it, and what comes of them by hand."""

import re

import pytest

from electra_tf.apps.planning import prices
from electra_tf.apps.planning.prices import bill
from electra_tf.platform.errors import UserError

TABLE = prices.load()
DEVICE = """
device mine:
  peak_teraflops: 2
  peak_teraflops_source: a benchmark
  peak_teraflops_date: 2026
  utilization: 0.5
  utilization_source: measured
  utilization_date: 2026
"""
PRICE = "  dollars_per_hour: {}\n  dollars_per_hour_source: a bill\n  dollars_per_hour_date: 2026\n"


@pytest.fixture
def load(tmp_path):
    def write(text):
        path = tmp_path / "mine.yaml"
        path.write_text(text)
        return prices.load(path)
    return write


def test_every_number_of_the_table_has_a_source_and_a_year():
    quantities = [*TABLE.grids.values(), TABLE.pue]
    for device in TABLE.devices.values():
        assert device.peak > 1e12
        quantities += [device.utilization, *filter(None, (device.dollars_per_hour, device.watts))]
    for quantity in quantities:
        assert quantity.source and re.fullmatch(r"20[12]\d", quantity.date)


def test_a_bill_by_hand(load):
    table = load(DEVICE + PRICE.format("1.5") + "  watts: 200\n  watts_source: a\n"
                 "  watts_date: 2026\n")
    # 7.2e16 at 1e12 a second: 20 hours of one device, 5 of four; 20 h x 0.2 kW x 1.5 = 6 kWh.
    found = bill(7.2e16, table.device("mine"), count=4, utilization=0.5, pue=1.5,
                 grams_co2_per_kwh=100.0)
    assert (found.hours, found.dollars) == (5.0, 30.0)
    assert (found.kilowatt_hours, found.kilograms_co2) == pytest.approx((6.0, 0.6))
    twice = bill(7.2e16, table.device("mine"), count=4, utilization=1.0, pue=1.5,
                 grams_co2_per_kwh=100.0)
    assert twice.hours == 2.5
    unknown = bill(7.2e16, load(DEVICE).device("mine"), count=1, utilization=0.5, pue=1.5,
                   grams_co2_per_kwh=100.0)
    assert (unknown.dollars, unknown.kilowatt_hours, unknown.kilograms_co2) == (None, None, None)


def test_a_users_section_takes_the_place_of_the_whole_one(load):
    table = load("device V100:\n  utilization: 0.4\n  utilization_source: us\n"
                 "  utilization_date: 2026\n"
                 "grid mars:\n  grams_co2_per_kwh: 0\n  grams_co2_per_kwh_source: us\n"
                 "  grams_co2_per_kwh_date: 2026\n"
                 "electricity overhead:\n  pue: 1\n  pue_source: us\n  pue_date: 2026\n")
    assert table.device("v100").utilization.value == 0.4
    assert table.device("v100").dollars_per_hour is None
    assert table.devices.keys() == TABLE.devices.keys()
    assert (table.grid("mars").value, table.pue.value) == (0.0, 1.0)
    assert table.grid("world") == TABLE.grid("world")


@pytest.mark.parametrize(("text", "words"), [
    (DEVICE + PRICE.format("-3"), "dollars_per_hour must be 0 or more .* Received: -3"),
    (DEVICE + "  dollars: 3\n", "unknown 'dollars'; allowed: utilization, dollars_per_hour"),
    (DEVICE + "  watts: 3\n  watts_date: 2026\n", "watts_source is missing"),
    ("device mine:\n  utilization: 0.5\n  utilization_source: a\n  utilization_date: b\n",
     "add peak_teraflops, its source"),
    (DEVICE + DEVICE.replace("mine", "Mine"), "device Mine appears twice"),
    ("v100:\n  watts: 300\n", "v100 is not a section of the table; write `device NAME`"),
    ("device,price\nv100,3\n", "must hold sections"),
])
def test_a_bad_file_is_one_line(load, text, words):
    with pytest.raises(UserError, match=words) as error:
        load(text)
    assert "mine.yaml" in str(error.value) and "\n" not in str(error.value)
