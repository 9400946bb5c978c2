"""The command draws runs and says where; a mistake is one line."""

from matplotlib.image import imread

from electra_tf.apps.tools import plot_curves
from tests.support import command_flags
from tests.support.refusals import refused


def test_one_run_is_drawn_into_its_directory_and_several_into_a_file(tmp_path, capsys):
    run = tmp_path / "run"
    run.mkdir()
    (run / "metrics.jsonl").write_text('{"kind": "train", "step": 1, "loss": 45.0}\n')
    command_flags.run(plot_curves, f"--model_dir={run}")
    command_flags.run(plot_curves, f"--model_dir={run},{run}/../run",
                      f"--output={tmp_path}/both.png")
    assert capsys.readouterr().out == f"wrote {run}/loss_curves.png\nwrote {tmp_path}/both.png\n"
    assert imread(tmp_path / "both.png").shape[:2] == (403, 598)
    with refused(f"no {tmp_path}/metrics.jsonl; train first"):
        command_flags.run(plot_curves, f"--model_dir={tmp_path}")
