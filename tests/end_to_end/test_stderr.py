"""A successful command writes nothing to stderr but two lines of XLA's that have no switch."""

import os

import pytest

from tests.support import python_process, tiny_run

PROGRESS = ("% read", "note: ", "absl::InitializeLog()", "Compiled cluster using XLA")
"""Lines of data building, and of Abseil's log in TensorFlow."""
LEVELS = ("TF_CPP_MIN_LOG_LEVEL", "GRPC_VERBOSITY")


def stderr_of(*arguments: object) -> list[str]:
    """Returns the lines that a command writes to stderr, without those of PROGRESS."""
    environment = {name: value for name, value in os.environ.items() if name not in LEVELS}
    done = python_process.run(*arguments, env=environment)
    return [line for line in done.stderr.replace("\r", "\n").splitlines()
            if line.strip() and not any(known in line for known in PROGRESS)]


@pytest.mark.slow
def test_every_command_is_silent_and_data_building_also_in_its_workers(records, tmp_path):
    (tmp_path / "text.txt").write_text("\n\n".join(
        f"the {number} quick brown foxes jump over lazy dogs" for number in range(60)) + "\n")
    (tmp_path / "rows.tsv").write_text("text\tlabel\n" + "some words\t0\nother words\t1\n" * 4)
    text, vocabulary, rows, run, task = (
        tmp_path / name for name in ("text.txt", "vocab.txt", "rows.tsv", "run", "task"))
    compiling = ("from electra_tf.core import machine; machine.configure_libraries()\n"
                 "import tensorflow as tf\n"
                 "tf.config.list_physical_devices('GPU')\n"
                 "tf.function(lambda x: tf.nn.gelu(x) * 2, jit_compile=True)(tf.ones([3]))\n")
    commands = [
        ("-c", compiling),
        ("-m", "data_prep.build_vocab", f"--input={text}", f"--output={vocabulary}",
         "--vocab_size=400", "--num_workers=2"),
        ("-m", "data_prep.build_pretraining_data", f"--input={text}", f"--vocab_file={vocabulary}",
         f"--output_dir={tmp_path}/built", "--max_seq_length=16", "--num_workers=2",
         "--shard_text_bytes=1000"),
        ("run_pretraining.py", f"--data_dir={records}", f"--model_dir={run}", "--model_size=tiny",
         *tiny_run.FLAGS, "--num_train_steps=2", "--eval_steps=1"),
        ("run_pretraining.py", f"--data_dir={records}", f"--model_dir={run}", "--mode=samples"),
        ("-m", "electra_tf.apps.tools.export_model", f"--model_dir={run}",
         f"--output={tmp_path}/served"),
        ("run_finetuning.py", "--task=classification", f"--train={rows}", f"--dev={rows}",
         f"--init_checkpoint={run}", f"--model_dir={task}", "--num_train_epochs=1"),
        ("run_finetuning.py", "--mode=predict", f"--model_dir={task}", f"--input={rows}",
         f"--output={tmp_path}/out.tsv"),
        ("-m", "electra_tf.apps.tools.convert_checkpoint", f"--from={run}",
         f"--to={tmp_path}/theirs", "--to_format=hugging_face"),
        ("-m", "electra_tf.apps.tools.export_model", f"--model_dir={task}", "--format=tflite",
         f"--output={tmp_path}/task.tflite")]
    assert {command: lines for command in commands if (lines := stderr_of(*command))} == {}
