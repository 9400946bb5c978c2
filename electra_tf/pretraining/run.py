"""Prepares a run: checks settings, records and devices before any writing."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from electra_tf.checkpoints import checkpoint_files, run_directory
from electra_tf.checkpoints.run_directory import CHECKPOINTS, DECAY, FINISHED, STABLE, STEPS
from electra_tf.config.model import COOCCURRENCE, RANDOM, Positions, Tying
from electra_tf.config.objectives import objective_class
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.core import storage
from electra_tf.core.errors import UserError
from electra_tf.core.storage import Path
from electra_tf.data import manifest, shards
from electra_tf.data.manifest import Manifest
from electra_tf.data.pipeline import training_batches
from electra_tf.data.records import Records
from electra_tf.formats import pretrained
from electra_tf.formats.parts import extract
from electra_tf.formats.pretrained import Checkpoint
from electra_tf.modeling.masking import SpecialTokens, VocabInfo
from electra_tf.modeling.parameter_shapes import GENERATOR
from electra_tf.objectives.pretraining import (
    ObjectiveContext,
    PretrainingObjective,
    TrainedGenerator,
)
from electra_tf.pretraining import init_from, multi_worker, word_vectors
from electra_tf.pretraining.fixed_noise import token_counts
from electra_tf.reporting import trackers
from electra_tf.text.normalization import TextSettings, recorded_normalization
from electra_tf.text.vocabulary import Vocabulary
from electra_tf.training import failures, strategies
from electra_tf.training.devices import build_model

_POSITIONS = "max_position_embeddings"
_ENCODER_SHAPE = ("embedding_size", "hidden_size", "num_layers", "num_heads",
                  "intermediate_size", _POSITIONS, "type_vocab_size", "architecture", "positions",
                  "rotary_base", "local_rotary_base", "attention_window", "global_every")
_GENERATOR_SIZE = ("generator_width", "generator_depth")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
    """Checked settings, records and devices."""

    config: PretrainingConfig  # Settings without automatic values.
    records: Records
    model_dir: Path
    text: TextSettings  # How text becomes token ids.
    strategy: tf.distribute.Strategy
    objective: PretrainingObjective
    initial: Checkpoint | None = None  # Initial networks; None for new weights.
    added_rows: Sequence[str] = ()
    """Rows that `init_from.fit` added to the initial networks, as text."""
    finished_at: Sequence[int] = ()  # Earlier numbers of steps, if the run was extended.
    stable_until: int = 0
    """The last of them that an `optimizer.decay_fraction` of 0 ended, if it is another now."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary of the records."""
        return self.text.vocabulary

    @property
    def identity(self) -> dict[str, Any]:
        """Facts that affect the run's result, as `run_directory` stores them."""
        extended = {FINISHED: list(self.finished_at)} if self.finished_at else {}
        extended |= {STABLE: self.stable_until} if self.stable_until else {}
        return run_directory.identity(self.config, self.text.to_dict() | extended | {
            "dataset": self.records.fingerprint,
            "initial": None if self.initial is None else self.initial.source})

    @property
    def length(self) -> int:
        """L, tokens of an example."""
        return self.config.data.max_seq_length

    def examples(self, split: str) -> int:
        """Returns the number of examples of "train" or "eval"."""
        return sum(shard.examples for shard in self.records.shards[split])

    def batches(self, first_step: int, last_step: int,
                input_context: tf.distribute.InputContext) -> tf.data.Dataset:
        """Returns one worker's share of the batches of steps [first_step, last_step)."""
        return training_batches(
            self.records, pad_id=self.vocabulary.pad_id, seed=self.config.training.seed,
            buffer_examples=self.config.data.shuffle_buffer, first_step=first_step,
            global_batch_size=self.config.training.train_batch_size, last_step=last_step,
            input_context=input_context)

    def require_records(self) -> None:
        """Reads all records; raises `UserError` that names the first one that can't be used."""
        shards.require_readable(self.records)

    def build_model(self, *, is_new: bool = False) -> tf_keras.Model:
        """Creates the networks on the run's devices.

        `is_new` means that their initial weights count, so that word vectors are worth counting.
        """
        # Of several workers the chief counts; `restore` sends its weights to the others.
        config, vectors = self.config, self.config.initialization.word_vectors
        if not is_new or (vectors == COOCCURRENCE and not multi_worker.is_chief(self.strategy)):
            vectors = RANDOM
        elif vectors == COOCCURRENCE:
            # An earlier file may be of a run on other records that has no checkpoint.
            path = self.model_dir / run_directory.WORD_VECTORS_FILE
            word_vectors.write(self.records, vocab_info(self.vocabulary).special,
                               config.model.embedding_size, path)
            vectors = str(path)
        return build_model(
            self.objective, override(config, {"initialization.word_vectors": vectors}),
            self.strategy, seed=config.training.seed, cls_id=self.vocabulary.cls_id)


def prepare_run(config: PretrainingConfig, data_dir: str | Path, model_dir: Path,
                vocab_file: Path | None = None, initial: Checkpoint | None = None, *,
                restart: bool = False) -> Run:
    """Returns a run that is ready to start; a `UserError` names what doesn't fit the settings.

    More steps than those of a finished run in `model_dir` extend it, unless `restart` is true. The
    vocabulary of `vocab_file` must equal the records'; `initial` networks must have the configured
    shape, except for rows that `init_from.fit` adds. A step must fit into this machine's memory.
    """
    # Records and vocabulary, and examples that fit into the model.
    for tracker in config.runtime.report_to:  # Refuses one that isn't installed.
        trackers.errors_of(tracker)
    built = manifest.load(data_dir)
    records = built.records(storage.path(data_dir))
    text = _text(built, records, vocab_file)
    length, max_positions = config.data.max_seq_length, config.model.max_position_embeddings
    if length not in (0, records.max_seq_length):
        raise UserError(f"--max_seq_length={length}, but the records in {records} were built with "
                        f"{records.max_seq_length}. Leave the flag out, or build the records "
                        "again.")
    if records.max_seq_length > max_positions:
        raise UserError(
            f"the records in {records} are {records.max_seq_length} tokens long, but the model has "
            f"model.max_position_embeddings={max_positions}. Build shorter records, or add "
            f"--set model.max_position_embeddings={records.max_seq_length}.")
    if not records.shards["train"]:
        raise UserError(f"the records in {records} hold no training examples. Build them again "
                        "with build_pretraining_data from more text or with a smaller "
                        "--held_out_fraction.")

    # Initial networks, with rows for new tokens and positions; steps of an extended run.
    added_rows: list[str] = []
    if initial is not None:
        _check_shape(initial, config)
        initial, added_rows = init_from.fit(
            initial, text, config.model.max_position_embeddings, str(records))
    steps = config.training.num_train_steps
    finished_at, stable_until = ([], 0) if restart else _finished_at(
        model_dir, steps, config.optimizer.decay_fraction)

    # The devices, before TensorFlow's first op, as threads and workers can be set only before it.
    manifest.verify_shards(data_dir, built, config.runtime.verify_checksums)
    strategy, resolved = strategies.setup_devices(config)
    shards.check_first_examples(records)
    config = override(config, {
        "model.vocab_size": text.vocabulary.size,
        "data.max_seq_length": config.data.max_seq_length or records.max_seq_length,
        "runtime.log_every_steps": config.runtime.log_interval(steps),
    } | resolved)

    # The objective, with the generator that its settings name.
    generator = None
    if (source := config.objective.generator_dir(model_dir)) is not None:
        checkpoint = pretrained.read(source)
        init_from.require_same_normalization(checkpoint, text, str(records))
        if checkpoint.text.vocabulary != text.vocabulary:
            raise UserError(
                f"{checkpoint.source} has another vocabulary than the records in {records}; build "
                f"them again with --vocab_file={checkpoint.text.vocabulary.source}.")
        generator = TrainedGenerator(*extract(checkpoint, "generator"))
        positions = generator.encoder.max_position_embeddings
        if generator.encoder.positions == Positions.LEARNED and positions < records.max_seq_length:
            raise UserError(
                f"{checkpoint.source} has {positions} positions, and the records in {records} are "
                f"{records.max_seq_length} tokens long; build records with "
                f"--max_seq_length={positions}.")
    vocab = vocab_info(text.vocabulary)
    objective = objective_class(config.objective.name)(config, ObjectiveContext(
        vocab=vocab, generator=generator,
        token_counts=functools.partial(token_counts, records, vocab.special)))
    failures.require_memory(
        config.model, config.runtime, strategy, length=config.data.max_seq_length,
        batch=config.training.train_batch_size)
    return Run(config=config, records=records, model_dir=model_dir, text=text,
               strategy=strategy, objective=objective, initial=initial, added_rows=added_rows,
               finished_at=finished_at, stable_until=stable_until)


def _finished_at(model_dir: Path, num_steps: int, decay_fraction: float) -> tuple[list[int], int]:
    """Returns `Run.finished_at` and `stable_until` of a run that was extended, or is now."""
    if not run_directory.has_run(model_dir):
        return [], 0
    # The saved steps and the ends of earlier extensions; fewer steps are refused elsewhere.
    saved = run_directory.read_identity(model_dir)
    earlier, steps = list(saved.get(FINISHED, [])), saved.get(STEPS, num_steps)
    stable_until = saved.get(STABLE, 0)
    if num_steps <= steps:
        return earlier, stable_until

    # An extension, if the run is finished.
    newest = max(checkpoint_files.sealed_steps(model_dir / CHECKPOINTS), default=0)
    if newest < steps:
        raise UserError(f"{STEPS}={num_steps} would extend the run in {model_dir}, which is at "
                        f"step {newest:,} of {steps:,}. Only a finished run can be extended: "
                        f"finish it with {STEPS}={steps}, then repeat this command.")
    return [*earlier, steps], (steps if saved[DECAY] == 0.0 < decay_fraction else stable_until)


def vocab_info(vocabulary: Vocabulary) -> VocabInfo:
    """Returns the special tokens, the size and the continuing pieces of a vocabulary."""
    special = SpecialTokens(pad=vocabulary.pad_id, cls=vocabulary.cls_id, sep=vocabulary.sep_id,
                            mask=vocabulary.mask_id)
    return VocabInfo(special, vocabulary.size, vocabulary.continues)


def shape_of(initial: Checkpoint) -> dict[str, Any]:
    """Returns the settings, by name, that give new networks the shape of initial ones."""
    names = _ENCODER_SHAPE + ((*_GENERATOR_SIZE, "tying") if _has_generator(initial) else ())
    return {f"model.{name}": getattr(initial.config, name) for name in names}


def _has_generator(initial: Checkpoint) -> bool:
    # One encoder can have both heads, but that of a masked language model alone is no generator.
    # Electric's generator is two towers.
    return initial.has_both or any(
        name.startswith(GENERATOR) and "/encoder/" in name for name in initial.weights)


def _check_shape(initial: Checkpoint, config: PretrainingConfig) -> None:
    # The published ELECTRA-Small generator is as wide as its discriminator, not a quarter.
    initial_model, model = initial.config, config.model
    sizes = [(network.generator.hidden_size, network.generator.num_layers)
             for network in (initial_model, model)]
    names = _ENCODER_SHAPE + (
        _GENERATOR_SIZE if _has_generator(initial) and sizes[0] != sizes[1] else ())
    # Two networks share the same weights as before; one encoder for both heads begins a new one.
    if _has_generator(initial) and Tying.EVERYTHING not in (initial_model.tying, model.tying):
        names += "tying",
    other = [f"model.{name} is {getattr(initial_model, name)}, not {getattr(model, name)}"
             for name in names if getattr(initial_model, name) != getattr(model, name)
             and not (name == _POSITIONS
                      and initial_model.max_position_embeddings < model.max_position_embeddings)]
    if other:
        raise UserError(f"{initial.source} has another shape: {'; '.join(other)}. Leave "
                        "--model_size and these settings out: the run takes the shape from there.")


def _text(built: Manifest, records: Records, vocab_file: Path | None) -> TextSettings:
    # A vocabulary of the user's must be that of the records, with the same normalization.
    path = vocab_file or records.data_dir / run_directory.VOCABULARY_FILE
    vocabulary = Vocabulary.load(path)
    normalization = recorded_normalization(vocabulary, path) or built.vocabulary.normalization
    if (vocabulary.sha256, normalization) != (
            built.vocabulary.sha256, built.vocabulary.normalization):
        raise UserError(
            f"{path} ({vocabulary.size} entries, {normalization}) isn't the vocabulary that the "
            f"records in {records} were built with ({built.vocabulary.size} entries, "
            f"{built.vocabulary.normalization}). Name the right one by --vocab_file, or build the "
            "records again.")
    return TextSettings(vocabulary=vocabulary, normalization=normalization)
