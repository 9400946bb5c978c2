"""Runs Model Garden's builder of BERT's examples, `create_pretraining_data`.

It makes one copy of the text (its default is 10). It also draws which tokens are masked and pairs
texts for next-sentence prediction: its format holds them, so they are part of its work.
"""

import pathlib
import random
import tempfile

from benchmarks.harness.worker import Ready
from electra_tf.platform import native_libraries


def prepare(vocab_file: str, max_seq_length: int) -> Ready:
    """Loads the vocabulary and TensorFlow, and returns the turn."""
    native_libraries.configure()
    from official.nlp.data import create_pretraining_data as builder
    from official.nlp.tools import tokenization

    tokenizer = tokenization.FullTokenizer(vocab_file=vocab_file, do_lower_case=True)
    max_masked = round(0.15 * max_seq_length) + 1

    def turn(text: str) -> dict[str, int]:
        instances = builder.create_training_instances(
            [text], tokenizer, builder.get_processor_text_fn(False, True), max_seq_length,
            dupe_factor=1, short_seq_prob=0.1, masked_lm_prob=0.15,
            max_predictions_per_seq=max_masked, rng=random.Random(1))
        with tempfile.TemporaryDirectory() as scratch:
            records = pathlib.Path(scratch) / "records"
            builder.write_instance_to_example_files(
                instances, tokenizer, max_seq_length, max_masked, [str(records)],
                gzip_compress=False, use_v2_feature_names=True)
            return {"bytes": records.stat().st_size}

    return Ready(label="create_pretraining_data", turn=turn)
