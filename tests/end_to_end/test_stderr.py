"""A successful command writes nothing to stderr but two lines of XLA's that have no switch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import tiny_records, tiny_run

ROOT = Path(__file__).parents[2]
PROGRESS = ("% read", "note: ", "absl::InitializeLog()", "Compiled cluster using XLA")
"""Lines of data building, and of Abseil's log in TensorFlow."""
LEVELS = ("TF_CPP_MIN_LOG_LEVEL", "GRPC_VERBOSITY")


def stderr_of(*arguments: object) -> list[str]:
    """Returns the lines that a command writes to stderr, without those of PROGRESS."""
    environment = {name: value for name, value in os.environ.items() if name not in LEVELS}
    done = subprocess.run([sys.executable, *map(str, arguments)], cwd=ROOT, env=environment,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [line for line in done.stderr.replace("\r", "\n").splitlines()
            if line.strip() and not any(known in line for known in PROGRESS)]


def test_compiling_and_looking_for_a_gpu_are_silent():
    program = ("from electra_tf.platform import native_logging; native_logging.quiet()\n"
               "import tensorflow as tf\n"
               "tf.config.list_physical_devices('GPU')\n"
               "tf.function(lambda x: tf.nn.gelu(x) * 2, jit_compile=True)(tf.ones([3]))\n")
    assert stderr_of("-c", program) == []


@pytest.fixture(scope="module")
def directory(tmp_path_factory) -> Path:
    """Records, a text and a table."""
    path = tmp_path_factory.mktemp("quiet")
    tiny_records.write(path / "records")
    (path / "text.txt").write_text("\n\n".join(
        f"the {number} quick brown foxes jump over lazy dogs" for number in range(60)) + "\n")
    rows = "".join(f"a row of words\t{number % 2}\n" for number in range(8))
    (path / "rows.tsv").write_text(f"text\tlabel\n{rows}")
    return path


@pytest.mark.slow
def test_data_building_is_silent_in_its_workers_too(directory):
    assert stderr_of("-m", "data_prep.build_vocab", f"--input={directory}/text.txt",
                     f"--output={directory}/vocab.txt", "--vocab_size=400",
                     "--num_workers=2") == []
    assert stderr_of("-m", "data_prep.build_pretraining_data", f"--input={directory}/text.txt",
                     f"--vocab_file={directory}/vocab.txt", f"--output_dir={directory}/built",
                     "--max_seq_length=16", "--num_workers=2", "--shard_text_bytes=1000") == []


@pytest.mark.slow
def test_training_fine_tuning_export_and_conversion_are_silent(directory):
    run, task = directory / "run", directory / "task"
    records = f"--data_dir={directory}/records"
    train = ("run_pretraining.py", records, f"--model_dir={run}", "--model_size=tiny",
             *tiny_run.FLAGS)
    commands = [
        (*train, "--num_train_steps=2", "--eval_steps=1"),
        ("run_pretraining.py", records, f"--model_dir={run}", "--mode=samples"),
        ("-m", "electra_tf.apps.tools.export_model", f"--model_dir={run}",
         f"--export_dir={directory}/served"),
        ("run_finetuning.py", "--task=classification", f"--train={directory}/rows.tsv",
         f"--dev={directory}/rows.tsv", f"--init_checkpoint={run}", f"--model_dir={task}",
         "--num_train_epochs=1"),
        ("run_finetuning.py", "--mode=predict", f"--model_dir={task}",
         f"--input={directory}/rows.tsv", f"--output={directory}/out.tsv"),
        ("-m", "electra_tf.apps.tools.convert_checkpoint", f"--from={run}",
         f"--to={directory}/theirs", "--to_format=hugging_face"),
        ("-m", "electra_tf.apps.tools.export_tflite", f"--model_dir={task}",
         f"--output={directory}/task.tflite"),
    ]
    assert {command: lines for command in commands if (lines := stderr_of(*command))} == {}
