import dataclasses
from pathlib import Path

from docs.generate_reference import settings_page as page
from electra_tf.config.finetuning import FinetuningConfig
from electra_tf.config.objectives import OBJECTIVES
from electra_tf.config.overrides import flatten
from electra_tf.config.pretraining import PretrainingConfig


def test_the_page_in_docs_is_the_one_that_the_tool_prints():
    assert (Path(__file__).parents[2] / "docs" / "configuration.md").read_text() == page()


def test_every_setting_is_on_the_page_with_its_meaning():
    rows = [line for line in page().splitlines() if line.startswith("| `")]
    finetuning = [name for name in flatten(FinetuningConfig())
                  if not name.startswith(("model.", "initialization.", "runtime."))]
    others = [field for entry in OBJECTIVES.values() if entry.settings.name != "electra"
              for field in dataclasses.fields(entry.settings) if field.name != "name"]
    assert len(rows) == len(flatten(PretrainingConfig())) + len(finetuning) + len(others)
    assert all(row.split("|")[3].strip() for row in rows)
