"""An exported discriminator has a card beside it, and its checksums cover the card."""

import json

from electra_tf.apps.tools import export_model
from electra_tf.export import saved_model
from electra_tf.export.new_directory import CHECKSUMS
from tests import command_flags


def test_the_card_of_an_export_says_how_to_ask_it(run, tmp_path, monkeypatch):
    monkeypatch.setattr(saved_model, "compare", lambda *_: 0.0)  # Another test loads exports.
    with command_flags.defined(export_model.define):
        command_flags.call(export_model.main, f"--model_dir={run}", f"--export_dir={tmp_path}")
    text = (tmp_path / "1" / "README.md").read_text()
    assert f"\n# {tmp_path.name}\n" in text
    assert f'tf.saved_model.load("{tmp_path / "1"}").signatures["serving_default"]' in text
    assert "README.md" in json.loads((tmp_path / "1" / CHECKSUMS).read_text())
