"""What TensorFlow says of memory, disks and records becomes one line with the way out."""

import pytest
import tensorflow as tf

from electra_tf.config.model import ModelConfig
from electra_tf.config.runtime import RuntimeConfig
from electra_tf.core.errors import UserError
from electra_tf.training import failures


@pytest.mark.parametrize(("kind", "message", "words"), [
    (tf.errors.ResourceExhaustedError, "OOM when allocating tensor",
     "the memory is full: .*OOM.*--train_batch_size.*--gradient_checkpointing"),
    (tf.errors.ResourceExhaustedError, "a.data; No space left on device", "disk is full.*free"),
    (tf.errors.DataLossError, "corrupted record at 12", "records are damaged.*record at 12")])
def test_an_error_of_tensorflow_is_one_line_with_the_fix(kind, message, words):
    with pytest.raises(UserError, match=words) as caught:
        with failures.explained():
            raise kind(None, None, f"{{{{node a}}}} {message}\n\t [[{{{{node b}}}}]] [Op:X]")
    assert "node" not in str(caught.value) and "Op:" not in str(caught.value)


@pytest.mark.parametrize("error", [
    tf.errors.InvalidArgumentError(None, None, "assertion failed: [a shard holds fewer examples]"),
    tf.errors.InvalidArgumentError(None, None, "Name: <unknown>, Key: ids, Index: 0. Data types"),
    tf.errors.InvalidArgumentError(None, None, "Could not parse example input, value: 'a'"),
    tf.errors.DataLossError(None, None, "corrupted record at 12"),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")])
def test_all_records_are_read_to_name_the_damaged_one(capsys, error):
    def require_records():
        raise UserError("train-00000.tfrecord: record 5")

    with pytest.raises(UserError, match="train-00000.tfrecord: record 5"):
        with failures.explained(require_records):
            raise error
    assert capsys.readouterr().err.startswith("note: the records are damaged; reading all shards")
    if not isinstance(error, tf.errors.DataLossError):  # Sound records: not their mistake.
        with pytest.raises(type(error)), failures.explained(lambda: None):
            raise error


def test_a_mistake_of_ours_stays_a_traceback():
    with pytest.raises(tf.errors.InvalidArgumentError), failures.explained():
        tf.reshape(tf.zeros([3]), [2])


def require_memory(batch=32, length=128, model=ModelConfig(), **runtime):  # noqa: B008
    failures.require_memory(model, RuntimeConfig(**runtime),
                          tf.distribute.OneDeviceStrategy("CPU:0"), length=length, batch=batch)


def test_a_batch_that_cannot_fit_is_refused_before_anything_is_allocated(monkeypatch, tmp_path):
    (tmp_path / "memory.max").write_text("8000000000\n")
    monkeypatch.setattr(failures, "_CGROUP", tmp_path / "memory.max")
    monkeypatch.setattr(failures.os, "sysconf", lambda name: 10**6)  # 1,000 GB without a container.
    require_memory()
    with pytest.raises(UserError, match="65,536 rows of 512 tokens takes at least 1,856 GB; this "
                                        "machine has 8. Use a smaller --train_batch_size"):
        require_memory(batch=65536, length=512)
    require_memory(batch=65536, length=128, gradient_accumulation_steps=1024)
    require_memory(batch=400, length=512, gradient_checkpointing=True)
    with pytest.raises(UserError, match="takes 155 GB with its optimizer's state; this machine has "
                                        "8. Use a smaller model"):
        require_memory(model=ModelConfig(hidden_size=8192, intermediate_size=32768, num_heads=128))
