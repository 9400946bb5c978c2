"""The pass over made-up records that the input's rate is measured on."""

import pytest

from benchmarks.pretraining import input_rate
from electra_tf.data import manifest, mixture
from electra_tf.platform.errors import UserError


def test_made_up_records_are_read_whole(tmp_path):
    input_rate.write_records(tmp_path, examples=21, length=16)
    records = manifest.load(tmp_path)
    manifest.verify_shards(tmp_path, records, True)
    assert sum(shard.tokens for shard in records.shards) == 21 * 16
    assert input_rate.read(mixture.load(tmp_path), batch=4, seed=1) > 0.0
    with pytest.raises(UserError, match="holds 21 training examples, less than --batch=22"):
        input_rate.read(mixture.load(tmp_path), batch=22, seed=1)
