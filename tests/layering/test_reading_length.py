"""How much a newcomer reads: whole lines of every file reached by imports, lazy ones included.

The limits are the values of 2026-11-26 plus 3 %, so that a setting or a case fits; for fine-tuning,
which then had just learned two kinds of tasks, windows, folds, grids, teachers and trackers, the
margin is 50 lines. An encoder layer that is traced once, as a function of its weights, added 80
lines and lets the first step begin 2 s earlier. Lower the limits after a simplification.
"""

import pytest

from tests.support import sources

LIMITS = {  # entry points: maximum of lines and of modules
    ("run_pretraining",): (9_780, 84),
    ("run_finetuning",): (12_500, 94),
    ("electra_tf.objectives.electra", "electra_tf.training.step"): (3_020, 25),
}


@pytest.mark.parametrize("entries", LIMITS, ids=lambda entries: " and ".join(entries))
def test_what_is_read_from_an_entry_point_stays_short(entries):
    lines = {name: len((sources.ROOT / sources.modules()[name]).read_text("utf-8").splitlines())
             for name in sources.closure(*entries)[0]}
    longest = sorted(lines, key=lines.get, reverse=True)[:10]
    max_lines, max_modules = LIMITS[entries]
    assert sum(lines.values()) <= max_lines, longest
    assert len(lines) <= max_modules, longest
