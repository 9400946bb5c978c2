r"""Shows what a directory of records contains.

    python -m electra_tf.apps.tools.inspect_records records
    python -m electra_tf.apps.tools.inspect_records records --examples=5 --set masking.rate=0.25

Prints the manifest, copies of examples, their lengths, frequent and rare tokens, and some examples
with the masks that training would draw. It reads all examples. docs/how_to/data.md explains it.
"""

import functools
import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from absl import flags

from electra_tf.config import overrides
from electra_tf.config.corruption import MaskingConfig
from electra_tf.config.pretraining import SIZES, resolve
from electra_tf.core import command_line, storage
from electra_tf.core.errors import UserError, one_line
from electra_tf.core.storage import Path
from electra_tf.data.manifest import Manifest, load, verify_shards
from electra_tf.data.records import SPLITS
from electra_tf.reporting.tables import percent, text_table, wrapped
from electra_tf.text import coverage
from electra_tf.text.vocabulary import MASK, SPECIAL_TOKENS, VOCABULARY_FILE, Vocabulary

NUM_TOKENS = 40  # Frequent tokens that are shown, and rare ones.
LENGTH_BINS = 8


class Statistics(NamedTuple):
    """Statistics of the examples of "train" or "eval"."""

    lengths: np.ndarray  # int64 [examples]: tokens of each.
    hashes: np.ndarray  # int64 [examples]: equal for examples of equal tokens.
    frequencies: np.ndarray  # int64 [V]: occurrences of each vocabulary entry.


def read_examples(data_dir: Path, manifest: Manifest, split: str) -> Iterator[np.ndarray]:
    """Yields the ids of all examples in order, integers [n] each."""
    from electra_tf.data import shards  # TensorFlow takes seconds to import.

    for shard in manifest.shards_of(split):
        yield from shards.stored_examples(manifest.records(data_dir), shard)


def count(data_dir: Path, manifest: Manifest, vocabulary: Vocabulary) -> dict[str, Statistics]:
    """Returns split -> statistics of all its examples."""
    statistics = {}
    for split in SPLITS:
        # Token counts [V], and a length and a hash of each example's ids.
        frequencies, facts = np.zeros(vocabulary.size, np.int64), []
        for ids in read_examples(data_dir, manifest, split):
            np.add.at(frequencies, ids, 1)
            facts.append((len(ids), hash(ids.tobytes())))
        statistics[split] = Statistics(
            *np.array(facts, np.int64).reshape(-1, 2).T, frequencies)
    return statistics


def tables(manifest: Manifest, vocabulary: Vocabulary,
           statistics: dict[str, Statistics]) -> list[str]:
    """Returns the tables of the records, of lengths and of tokens."""
    # Facts of the manifest, copies and leaks.
    counts, longest = manifest.counts, manifest.max_seq_length
    train, held_out = (statistics[split] for split in SPLITS)
    copies = train.hashes.size - np.unique(train.hashes).size
    leaked = int(np.isin(held_out.hashes, train.hashes).sum())
    positions = counts.examples * longest
    records = [
        ("examples", f"{train.lengths.size:,} to train, {held_out.lengths.size:,} held out"),
        ("copies", f"{copies:,} training examples equal an earlier one, "
         f"{leaked:,} held-out examples equal a training example"),
        ("tokens", f"{counts.content_tokens + counts.special_tokens:,}, of which "
         f"{counts.special_tokens:,} are [CLS] and [SEP]"),
        ("tokens of an example", f"at most {longest}, packing {manifest.packing}; "
         f"{percent(counts.padding_positions, positions)} of all positions are padding"),
        ("examples of one segment", percent(counts.single_segment_examples, counts.examples)),
        ("vocabulary", f"{vocabulary.size:,} tokens, {manifest.vocabulary.normalization}, "
         f"sha256 {vocabulary.sha256[:12]}..."),
        ("made of", f"{counts.documents:,} documents, {counts.words:,} words, "
         f"{counts.text_bytes / 1e6:,.1f} MB of text"),
        ("left out", f"{counts.dropped_text_bytes / 1e6:,.1f} MB by cleaning, "
         f"{counts.skipped_documents:,} damaged documents"),
        *((f"  {one_line(source.name, max_length=60)}", f"{source.documents:,} documents, "
           f"{source.text_bytes / 1e6:,.1f} MB") for source in manifest.sources),
        ("fingerprint", f"{manifest.fingerprint[:16]}..., equal for equal examples")]

    # Examples by length, in bins of equal width.
    edges = np.unique(np.linspace(0, longest, LENGTH_BINS + 1).round().astype(int))
    rows = [(f"{low + 1} to {high}", *(f"{((low < part.lengths) & (part.lengths <= high)).sum():,}"
                                       for part in (train, held_out)))
            for low, high in itertools.pairwise(edges)]

    # Tokens by frequency, without [CLS] and its kind.
    frequencies = train.frequencies + held_out.frequencies
    order = [index for index in np.argsort(-frequencies, kind="stable")
             if vocabulary.tokens[index] not in SPECIAL_TOKENS]
    used = [index for index in order if frequencies[index]]
    num_words = np.where(vocabulary.continues, 0, frequencies)[order].sum()
    unknown = counts.unknown_words

    def listed(indices: list[int]) -> str:
        return "  ".join(f"{printable(vocabulary.tokens[index])} {frequencies[index]:,}"
                         for index in indices) or "none"

    tokens = (
        ("most frequent", listed(used[:NUM_TOKENS])), ("rarest", listed(used[-NUM_TOKENS:])),
        ("never", f"{len(order) - len(used):,} of {len(order):,}"),
        ("per word", f"{frequencies[order].sum() / max(1, num_words):.2f}"),
        ("[UNK]", f"{unknown:,} words"))
    return [text_table("Records", records),
            text_table("Lengths", rows, ("tokens", "train", "held out")),
            text_table("Tokens", tokens,
                       notes=coverage.coverage_warnings(counts.tokenizer_words, unknown))]


def masked_examples(data_dir: Path, manifest: Manifest, vocabulary: Vocabulary, number: int,
                    masking: MaskingConfig, seed: int) -> Iterator[str]:
    """Yields the first examples as text: «word» is read as [MASK], {word} is read and predicted."""
    import tensorflow as tf

    from electra_tf.modeling.masking import mark_positions, mask_tokens
    from electra_tf.modeling.rng import Rng
    from electra_tf.pretraining.run import vocab_info

    split = "train" if manifest.shards_of("train") else "eval"
    examples = itertools.islice(read_examples(data_dir, manifest, split), number)
    for index, tokens in enumerate(examples):
        # The masks of training for a batch of this example alone, [1, L], in step 0.
        padding_mask = np.arange(manifest.max_seq_length) < len(tokens)
        ids = np.full(padding_mask.shape, vocabulary.pad_id, np.int32)
        ids[padding_mask] = tokens
        read, (positions, _, filled) = mask_tokens(
            tf.constant(ids[None]), tf.constant(padding_mask[None]), masking,
            vocab_info(vocabulary),
            Rng(seed=seed, step=tf.constant(0, tf.int64),
                first_example=tf.constant(index, tf.int64)))
        selected = mark_positions(positions, filled, ids.size).numpy()[0]
        # Marks on the tokens: selected and hidden, or selected and shown as they are.
        words = []
        for original, shown, is_selected in zip(
                ids[padding_mask], read.numpy()[0][padding_mask], selected[padding_mask],
                strict=True):
            token = printable(vocabulary.tokens[original])
            words.append(token if not is_selected else f"«{token}»"
                         if vocabulary.tokens[shown] == MASK else f"{{{token}}}")
        yield "\n".join(wrapped(words, f"  {index + 1}.  ", "      "))


def printable(text: str) -> str:
    """Returns text of the records without characters that disturb a terminal, at full length."""
    return one_line(text, max_length=max(1, 10 * len(text)))


def main(directory: str) -> None:
    """Prints the tables and the examples of a directory of records."""
    values, data_dir = flags.FLAGS, storage.path(directory)
    # The manifest must fit the vocabulary and the shards beside it.
    masking = resolve(changes=overrides.given_settings({})).masking
    manifest, path = load(data_dir), data_dir / VOCABULARY_FILE
    vocabulary = Vocabulary.load(path)
    if vocabulary.sha256 != manifest.vocabulary.sha256:
        raise UserError(f"{path} isn't the vocabulary of these records ({vocabulary.size:,} "
                        f"tokens instead of {manifest.vocabulary.size:,}); restore the file, or "
                        "build the records again.")
    verify_shards(data_dir, manifest, checksums=False)
    # Tables of all examples, and the first examples as text.
    statistics = count(data_dir, manifest, vocabulary)
    print(data_dir, *tables(manifest, vocabulary, statistics), sep="\n\n")
    if values.examples:
        print("\nExamples: «word» is read as [MASK], {word} is predicted but not masked", *(
            masked_examples(data_dir, manifest, vocabulary, values.examples, masking,
                            values.seed)), sep="\n")


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_integer("examples", 3, "Number of examples to show as text.", 0, 1000)
    flags.DEFINE_integer("seed", 1, "Seed of the masks.", 0, 2**31 - 1)
    overrides.define_setting_flags({}, SIZES)


run = functools.partial(command_line.run, main, define, summary=__doc__, operand="DIR", groups={
    "What is shown": ["examples", "seed"], "Masking": overrides.ANY_SETTING})

if __name__ == "__main__":
    run()
