"""The command finds out what a run holds, and converts it."""

import pytest

from electra_tf.apps.tools import export_tflite
from electra_tf.formats import pretrained
from electra_tf.tasks.task import Kind
from tests.support import command_flags, tiny_networks
from tests.support.refusals import refused


@pytest.mark.slow
def test_a_fine_tuned_run_from_the_command_line(networks, tmp_path, capsys):
    tagger = tiny_networks.finetuned(networks, Kind.TAGGING, ("B-X", "I-X", "O"), {"dense": 3})
    pretrained.write(tagger, tmp_path / "tagger", pretrained.Format.RUN)
    command_flags.run(export_tflite, f"--model_dir={tmp_path / 'tagger'}",
                      f"--output={tmp_path / 'tags.tflite'}")
    assert capsys.readouterr().out.startswith(f"exported {tmp_path / 'tags.tflite'}: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tagger", "tags.tflite"]


def test_mistakes_are_one_line_and_write_nothing(run, tmp_path):
    for arguments, words in (
            ([f"--output={run}"], "exists already"),
            ([f"--output={tmp_path / 'x'}", f"--model_dir={tmp_path}"], "holds no checkpoint")):
        with refused(words):
            command_flags.run(export_tflite, f"--model_dir={run}", *arguments)
    assert list(tmp_path.iterdir()) == []
