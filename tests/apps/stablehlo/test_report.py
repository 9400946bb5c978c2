"""What the compiler says becomes numbers, and numbers a table."""

import dataclasses

import pytest

from electra_tf.apps.stablehlo import ahead_of_time
from electra_tf.apps.stablehlo.compile_environment import (
    HEADING,
    Collective,
    Cores,
    Memory,
    Report,
    line,
)
from electra_tf.platform import strict_json
from electra_tf.platform.errors import UserError

CORES = Cores(topology="v5e:2x4", kind="TPU v5 lite", count=8)
MEMORY = Memory(arguments=1_000_000_000, outputs=0, shared=0, temporary=80_000_000_000,
                code=10_000_000)
MODULE = """
  %all-reduce.1 = (f32[]{:T(128)}, /*index=1*/bf16[16,64]{1,0:T(8,128)(2,1)S(1)}) all-reduce(\
%a, %b), channel_id=1, replica_groups={{0,1}}
  ROOT %all-reduce-start = f32[10]{0} all-reduce-start(%a), channel_id=2
  %get-tuple-element.2 = f32[99]{0} get-tuple-element(%all-reduce.1), index=0
  %all-to-all = (pred[4]{0}, s32[2,3]{1,0}) all-to-all(%a, %b), channel_id=5
"""


def test_exchanges_are_counted_with_their_bytes():
    assert ahead_of_time.collectives(MODULE) == (
        Collective(kind="all-reduce", count=2, bytes=4 + 2 * 16 * 64 + 40),
        Collective(kind="all-to-all", count=1, bytes=4 + 24))


def test_a_report_is_a_row_under_its_heading():
    found = Report(
        cores=CORES, seconds=61.4, flops=2.5e12, bytes_accessed=4e10,
        memory=Memory(arguments=2_000_000_000, outputs=0, shared=0, temporary=3_000_000_000,
                      code=10_000_000),
        collectives=(Collective(kind="all-reduce", count=2, bytes=500_000_000),))
    row = line(found)
    assert row.split() == ["v5e:2x4", "8", "5.01", "GB", "2.00", "3.00", "2,500", "40.0", "0.50",
                           "61", "s"]
    assert len(row) == len(HEADING)
    assert strict_json.loads(strict_json.dumps(found, Report), Report) == found


def test_the_memory_of_cards_is_checked_afterwards():
    more = dataclasses.replace(MEMORY, temporary=MEMORY.temporary + 10_000_000_000)
    assert ahead_of_time.too_large_for_a_card("a100:1", MEMORY) is None
    assert ahead_of_time.too_large_for_a_card("h200:8", more) is None
    assert ahead_of_time.too_large_for_a_card("v5e:2x4", more) is None
    assert ahead_of_time.too_large_for_a_card("h100:1", more) == (
        "does not fit: 91.0 GB of 85.9 GB per card")


def test_cards_are_counted_up_to_a_machines():
    for name in ("h100", "h100:", "h100:0", "h100:9", "a100:two", "h200:1x8"):
        with pytest.raises(UserError, match=r"how many cards of one machine\? 1 to 8"):
            ahead_of_time.topology(name)


@pytest.mark.parametrize(("said", "problem"), [
    ("RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. "
     "Used 28.50G of 15.48G hbm. Exceeded hbm capacity by 13.02G.\n\nTotal hbm usage",
     "does not fit: 28.50G of 15.48G HBM per core"),
    ("RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required for HLO temporaries "
     "(19.00G) exceeds available HBM (15.48G).", "does not fit: 19.00G of 15.48G HBM per core"),
    ("UNIMPLEMENTED: the op\n  sort", "UNIMPLEMENTED: the op sort")])
def test_why_a_step_doesnt_compile_is_a_line(said, problem):
    assert ahead_of_time._problem(RuntimeError(said)) == problem
    assert line(Report(cores=CORES, seconds=1.0, problem=problem)).endswith(problem)
