"""Weights & Biases and MLflow, without a network: what their own files hold after a run."""

import json
import struct
import sys
from types import SimpleNamespace

import mlflow
import pytest
import wandb
from wandb.proto.wandb_internal_pb2 import Record

from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.core import command_line
from electra_tf.core.errors import UserError
from electra_tf.reporting import trackers

CONFIG = override(PretrainingConfig(), {"training.seed": 7, "runtime.xla": "off"})
BOTH = ("wandb", "mlflow", "wandb")


@pytest.fixture(autouse=True)
def _local(monkeypatch, tmp_path):
    for name, value in {"WANDB_MODE": "offline", "WANDB_DIR": tmp_path, "WANDB_SILENT": "true",
                        "MLFLOW_TRACKING_URI": tmp_path / "mlruns",
                        "MLFLOW_ALLOW_FILE_STORE": "true"}.items():
        monkeypatch.setenv(name, str(value))
    yield
    wandb.teardown()  # Its process keeps the variables of its start.


def tracked(path, names=BOTH, part="", config=CONFIG):
    path.mkdir(exist_ok=True)
    return trackers.tracked(names, path / "trackers.json", config, {"task": "cola"}, part)


def wandb_records(file):
    """Yields the records of a file of Weights & Biases, LevelDB's log with a longer header."""
    content, position, record = file.read_bytes(), 7, b""
    while position + 7 < len(content):
        if 32768 - position % 32768 >= 7:
            length, kind = struct.unpack_from("<HB", content, position + 4)
            record += content[position + 7:position + 7 + length]
            position += 7 + length
            if kind in (1, 4):  # Whole, or the last part.
                yield Record.FromString(record)
                record = b""
        else:
            position += 32768 - position % 32768


def wandb_run(tmp_path, number=0):
    """What one of the runs, in their order, has: settings, rows of metrics, exit code."""
    wandb.teardown()  # Waits for the process that writes the files.
    files = sorted(tmp_path.glob("wandb/offline-run-*/*.wandb"),
                   key=lambda file: file.stat().st_ctime)
    records = list(wandb_records(files[number]))
    run = next(record.run for record in records if record.HasField("run"))
    return SimpleNamespace(
        id=run.run_id, name=run.display_name, group=run.run_group,
        config={item.key: json.loads(item.value_json) for item in run.config.update},
        rows=[{item.key or item.nested_key[0]: json.loads(item.value_json, parse_constant=str)
               for item in record.history.item}
              for record in records if record.HasField("history")],
        exit_code=[record.exit.exit_code for record in records if record.HasField("exit")])


def mlflow_run(path, key="mlflow"):
    run_id = json.loads((path / "trackers.json").read_text())[key]
    client = mlflow.MlflowClient()
    return client.get_run(run_id), lambda name: [
        (metric.step, metric.value) for metric in client.get_metric_history(run_id, name)]


def test_both_receive_settings_and_metrics_under_the_runs_name(tmp_path):
    with tracked(tmp_path / "cola", part="seed 7") as log:
        log(5, {"train/loss": 2.0})
        log(5, {"dev/accuracy": 0.5})
        log(10, {"train/loss": float("nan")})
    run, (stored, history) = wandb_run(tmp_path), mlflow_run(tmp_path / "cola", "mlflow seed 7")
    directory = str(tmp_path / "cola")
    assert (run.name, run.group) == (f"{directory} seed 7", directory)
    assert (run.config["training"]["seed"], run.config["runtime"]["xla"]) == (7, "off")
    assert run.config["task"] == "cola" and run.exit_code == [0]
    assert [{name: row[name] for name in row if "/" in name or name == "_step"}
            for row in run.rows] == [
        {"_step": 5, "train/loss": 2.0, "dev/accuracy": 0.5}, {"_step": 10, "train/loss": "NaN"}]
    assert stored.info.run_name == f"{directory} seed 7" and stored.info.status == "FINISHED"
    assert stored.data.tags["group"] == directory
    assert (stored.data.params["training.seed"], stored.data.params["task"]) == ("7", "cola")
    assert history("train/loss")[0] == (5, 2.0) and len(history("train/loss")) == 2


def test_an_interrupted_training_continues_its_runs(tmp_path):
    with pytest.raises(KeyboardInterrupt), tracked(tmp_path / "run") as log:
        log(1, {"loss": 2.0})
        raise KeyboardInterrupt
    assert mlflow_run(tmp_path / "run")[0].info.status == "FAILED"
    assert wandb_run(tmp_path).exit_code == [1]
    changed = override(CONFIG, {"training.seed": 8})  # MLflow keeps the first.
    with tracked(tmp_path / "run", config=changed) as log:
        log(2, {"loss": 1.0})
    stored, history = mlflow_run(tmp_path / "run")
    assert history("loss") == [(1, 2.0), (2, 1.0)] and stored.info.status == "FINISHED"
    assert stored.data.params["training.seed"] == "7"
    assert wandb_run(tmp_path).id == wandb_run(tmp_path, 1).id


def test_wandb_gets_no_step_twice(monkeypatch, tmp_path):
    with tracked(tmp_path / "run", ["wandb"]) as log:
        for step in (4, 2, 5):
            log(step, {"loss": 1.0})
    assert [row["_step"] for row in wandb_run(tmp_path).rows] == [4, 5]


@pytest.mark.parametrize(("name", "variable", "value", "reason"), [
    ("wandb", "WANDB_MODE", "nowhere", "mode.* set WANDB_MODE=offline"),
    ("mlflow", "MLFLOW_TRACKING_URI", "ftp://nowhere", "ftp.* Set MLFLOW_TRACKING_URI")])
def test_a_tracker_that_refuses_the_first_run_ends_the_command(
        tmp_path, monkeypatch, name, variable, value, reason):
    monkeypatch.setenv(variable, value)
    with pytest.raises(UserError, match=f"--report_to={name}: .*{reason}"), tracked(
            tmp_path / "run", [name]):
        pass
    assert not (tmp_path / "run/trackers.json").exists()


def test_a_failure_in_training_is_one_warning(tmp_path, monkeypatch, capsys):
    def fail(*_, **__):
        raise OSError("no space left")

    with tracked(tmp_path / "run") as log:
        log(1, {"loss": 2.0})
        monkeypatch.setattr(mlflow, "log_metrics", fail)
        log(2, {"loss": 1.0})
        log(3, {"loss": 0.5})
    assert capsys.readouterr().out.count("warning  --report_to=mlflow: no space left.") == 1
    assert [row["loss"] for row in wandb_run(tmp_path).rows] == [2.0, 1.0, 0.5]
    monkeypatch.setattr(wandb, "init", fail)
    with tracked(tmp_path / "run", part="seed 2") as log:
        log(1, {"loss": 2.0})
    assert "warning  --report_to=wandb: no space left." in capsys.readouterr().out
    assert mlflow_run(tmp_path / "run", "mlflow seed 2")[0].info.status == "FINISHED"


def test_a_missing_package_is_an_error_that_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb.errors", None)
    with pytest.raises(ModuleNotFoundError) as missing:
        trackers.errors_of("wandb")
    assert command_line._line(missing.value).startswith("wandb is not installed: pip install")


@pytest.mark.parametrize("value", ["wnb", "wandb,tensorboard", "none"])
def test_an_unknown_tracker_is_refused(value):
    with pytest.raises(UserError, match="report_to must be one of wandb, mlflow. Received: "):
        override(CONFIG, {"runtime.report_to": value})
    assert override(CONFIG, {"runtime.report_to": "wandb,mlflow"}).runtime.report_to == BOTH[:2]
