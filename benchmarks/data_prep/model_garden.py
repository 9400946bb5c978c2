"""Worker: Model Garden's builder of BERT's examples, `create_pretraining_data`.

It makes one copy of the text (its default is 10). It also draws which tokens are masked and pairs
texts for next-sentence prediction: its format holds them, so they are part of its work.
"""

import pathlib
import random

from benchmarks.data_prep.workload import Prepared, Workload, Written, serve
from electra_tf.platform import native_logging


def prepare(workload: Workload) -> Prepared:
    """Loads the vocabulary and TensorFlow."""
    native_logging.quiet()
    from official.nlp.data import create_pretraining_data as builder
    from official.nlp.tools import tokenization

    tokenizer = tokenization.FullTokenizer(vocab_file=workload.vocab_file, do_lower_case=True)
    most_masked = round(0.15 * workload.max_seq_length) + 1

    def turn(text: pathlib.Path, scratch: pathlib.Path) -> Written:
        records = scratch / "records"
        instances = builder.create_training_instances(
            [str(text)], tokenizer, builder.get_processor_text_fn(False, True),
            workload.max_seq_length, dupe_factor=1, short_seq_prob=0.1, masked_lm_prob=0.15,
            max_predictions_per_seq=most_masked, rng=random.Random(1))
        builder.write_instance_to_example_files(
            instances, tokenizer, workload.max_seq_length, most_masked, [str(records)],
            gzip_compress=False, use_v2_feature_names=True)
        return Written(bytes=records.stat().st_size)

    return Prepared(label="Model Garden, create_pretraining_data", turn=turn)


if __name__ == "__main__":
    serve(prepare)
