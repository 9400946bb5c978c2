"""How much a newcomer reads: whole lines of every file reached by imports, lazy ones included.

The limits may only be lowered.
"""

import pytest

from tests.layering import sources

LIMITS = {  # entry points: most lines, most modules
    ("run_pretraining",): (9_490, 79),
    ("run_finetuning",): (11_180, 93),
    ("electra_tf.objectives.electra", "electra_tf.training.step"): (2_840, 23),
}


@pytest.mark.parametrize("entries", LIMITS, ids=lambda entries: " and ".join(entries))
def test_what_is_read_from_an_entry_point_stays_short(entries):
    lines = {name: len((sources.ROOT / sources.modules()[name]).read_text("utf-8").splitlines())
             for name in sources.closure(*entries)[0]}
    longest = sorted(lines, key=lines.get, reverse=True)[:10]
    most_lines, most_modules = LIMITS[entries]
    assert sum(lines.values()) <= most_lines, longest
    assert len(lines) <= most_modules, longest
