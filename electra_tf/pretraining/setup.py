"""Checks that a run's settings, records and devices fit together, before anything is written."""

import dataclasses
import functools
from collections.abc import Collection, Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from electra_tf.checkpoints import directory, formats, run_directory
from electra_tf.checkpoints.pretrained import Pretrained, TextSettings
from electra_tf.checkpoints.run_directory import CHECKPOINTS, FINISHED, STEPS
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.data import manifest
from electra_tf.data.manifest import Records
from electra_tf.data.order import SHORTEST_ROW, RowPlaces
from electra_tf.data.pipeline import look_at_first_examples
from electra_tf.modeling.masking import SpecialTokens, TokenKinds
from electra_tf.objectives.objective import Given, GivenGenerator, PretrainingObjective
from electra_tf.objectives.registry import build_objective
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.pretraining.fixed_corruption import token_counts
from electra_tf.text import tokenization
from electra_tf.text.vocabulary import Vocabulary
from electra_tf.training import devices, memory
from electra_tf.training.assembly import build_model

_ENCODER_SHAPE = ("embedding_size", "hidden_size", "num_layers", "num_heads",
                  "intermediate_size", "max_position_embeddings", "type_vocab_size")
_GENERATOR_SHAPE = ("generator_width", "generator_depth", "tying")
"""Settings of `model` that decide the shape of the weights."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
    """Checked settings, records and devices of a run."""

    config: PretrainingConfig
    """Settings without automatic values."""
    records: Records
    model_dir: Path
    vocabulary: Vocabulary
    strategy: tf.distribute.Strategy
    objective: PretrainingObjective
    initial: Pretrained | None = None
    """Initial networks; None for new weights."""
    finished_at: Sequence[int] = ()
    """Earlier numbers of steps, if the run was extended."""

    @property
    def text(self) -> TextSettings:
        """How text becomes token ids."""
        return TextSettings(vocabulary=self.vocabulary,
                            normalization=self.records.manifest.vocabulary.normalization)

    @property
    def identity(self) -> dict[str, Any]:
        """Facts that affect the run's result, as `run_directory` stores them."""
        extended = {FINISHED: list(self.finished_at)} if self.finished_at else {}
        return run_directory.identity(self.config, self.text.facts() | extended | {
            "dataset": self.records.manifest.fingerprint,
            "initial": None if self.initial is None else self.initial.source})

    @property
    def length(self) -> int:
        """L, tokens of a row."""
        return self.config.data.max_seq_length

    @property
    def places(self) -> RowPlaces:
        """Where an example's rows of L tokens begin."""
        return RowPlaces(self.records.manifest.max_seq_length, self.length)

    def rows(self, split: str) -> int:
        """Returns the number of rows of L tokens of "train" or "eval"."""
        return self.records.manifest.examples(split) * self.places.rows

    def build_model(self) -> tf_keras.Model:
        """Creates the networks on the run's devices, with their initial weights."""
        return build_model(self.objective, self.config, self.strategy,
                           seed=self.config.training.seed)


def prepare(config: PretrainingConfig, data_dir: str | Path, model_dir: Path,
            vocab_file: Path | None = None, initial: Pretrained | None = None, *,
            given: Collection[str] = (), restart: bool = False, here: bool = True) -> Run:
    """Returns a run that is ready to start.

    Args:
        config: the run's settings. If its number of steps is larger than that of a finished run
            in `model_dir`, that run is extended.
        data_dir: directory of records.
        model_dir: the run's directory.
        vocab_file: vocabulary that must equal the records'.
        initial: initial networks. The generator's size is theirs.
        given: names of settings that the user chose, which initial networks must have.
        restart: begin again, whatever run is in `model_dir`.
        here: check that a step fits into this machine's memory.

    Raises:
        UserError: the records, the devices, the memory, the initial networks or the run in
            `model_dir` don't fit the settings.
    """
    records = Records.load(data_dir)
    vocabulary = _vocabulary(records, vocab_file)
    _check_length(config, records)
    if initial is not None:
        _check_text(initial, records)
        config = override(config, _generator_shape(initial, config, given))
        _check_shape(initial, config)
    steps = config.training.num_train_steps
    finished_at = [] if restart else _finished_at(model_dir, steps)
    manifest.verify_shards(data_dir, records.manifest, config.runtime.verify_checksums)
    strategy, resolved = devices.prepare(config)
    # After the devices: threads and workers can be set only before TensorFlow's first op.
    look_at_first_examples(records)
    config = override(config, {
        "model.vocab_size": vocabulary.size,
        "data.max_seq_length": config.data.max_seq_length or records.manifest.max_seq_length,
        "runtime.log_every_steps": config.runtime.log_interval(steps),
    } | resolved)
    objective = build_objective(
        # An extension leaves what depends on the number of steps, the sampling temperature.
        override(config, {"training.num_train_steps": [*finished_at, steps][0]}), Given(
            kinds=token_kinds(vocabulary), generator=_generator(config, model_dir, records),
            token_counts=functools.partial(token_counts, records, special_tokens(vocabulary))))
    if here:
        memory.require_room(
            config.model, config.runtime, strategy, length=config.data.max_seq_length,
            batch=config.training.train_batch_size)
    return Run(config=config, records=records, model_dir=model_dir, vocabulary=vocabulary,
               strategy=strategy, objective=objective, initial=initial, finished_at=finished_at)


def shape_of(initial: Pretrained) -> dict[str, Any]:
    """Returns the settings, by name, that give new networks the shape of initial ones."""
    names = [*_ENCODER_SHAPE, *(_GENERATOR_SHAPE if _has_generator(initial) else ())]
    return {f"model.{name}": getattr(initial.model, name) for name in names}


def _finished_at(model_dir: Path, num_steps: int) -> list[int]:
    """Returns the earlier numbers of steps of a run that is to have `num_steps` in the end.

    It is empty unless the run was extended, or is finished now and `num_steps` is larger.

    Raises:
        UserError: `num_steps` is larger and the run isn't finished.
    """
    if not run_directory.is_taken(model_dir):
        return []
    saved = run_directory.read_identity(model_dir)
    earlier, steps = list(saved.get(FINISHED, [])), saved.get(STEPS, num_steps)
    if num_steps <= steps:
        return earlier
    done = max(directory.finished(model_dir / CHECKPOINTS), default=0)
    if done < steps:
        raise UserError(f"{STEPS}: {steps} then, {num_steps} now, and the run in {model_dir} is at "
                        f"step {done:,}. Only a finished run can be extended: finish it with "
                        f"{STEPS}={steps}, then repeat this command.")
    return [*earlier, steps]


def special_tokens(vocabulary: Vocabulary) -> SpecialTokens:
    """Returns the ids that masking and replacement leave out."""
    return SpecialTokens(pad=vocabulary.pad_id, cls=vocabulary.cls_id, sep=vocabulary.sep_id,
                         mask=vocabulary.mask_id)


def token_kinds(vocabulary: Vocabulary) -> TokenKinds:
    """Returns the special tokens, the size and the continuing pieces of a vocabulary."""
    return TokenKinds(special_tokens(vocabulary), vocabulary.size, vocabulary.continues)


def _generator(config: PretrainingConfig, model_dir: Path,
               records: Records) -> GivenGenerator | None:
    """Returns the generator of another run that the settings name, or None."""
    source = config.objective.generator_dir(model_dir)
    if source is None:
        return None
    found = formats.read(source)
    _check_text(found, records)
    return GivenGenerator(source=found.source, model=found.model, weights=found.weights)


def _has_generator(initial: Pretrained) -> bool:
    return any(name.startswith("generator/encoder/") for name in initial.weights)


def _generator_shape(initial: Pretrained, config: PretrainingConfig,
                     given: Collection[str]) -> dict[str, float]:
    """Returns the width and depth of the generator that initial networks bring, by setting.

    The published ELECTRA-Small generator is as wide as its discriminator, not a quarter as wide.
    """
    theirs, ours = initial.model.generator, config.model.generator
    if not _has_generator(initial) or (
            (theirs.hidden_size, theirs.num_layers) == (ours.hidden_size, ours.num_layers)):
        return {}  # Another fraction of the same size would be another run's setting.
    values = {"model.generator_width": initial.model.generator_width,
              "model.generator_depth": initial.model.generator_depth}
    here = {"model.generator_width": config.model.generator_width,
            "model.generator_depth": config.model.generator_depth}
    for name in values:
        if name in given and here[name] != values[name]:
            raise UserError(f"{name}={here[name]} doesn't fit the generator of {initial.source}, "
                            f"which has {name}={values[name]:g}. Leave the setting out, or begin "
                            "without --init_checkpoint.")
    return values


def _check_shape(initial: Pretrained, config: PretrainingConfig) -> None:
    """Raises UserError if the encoder of initial networks has another shape."""
    other = [f"model.{name} is {getattr(initial.model, name)} there, "
             f"{getattr(config.model, name)} here" for name in _ENCODER_SHAPE
             if getattr(initial.model, name) != getattr(config.model, name)]
    if other:
        raise UserError(f"{initial.source} is of another size: {'; '.join(other)}. Leave "
                        "--model_size and these settings out: new networks take its shape.")


def _vocabulary(records: Records, vocab_file: Path | None) -> Vocabulary:
    path = vocab_file or records.data_dir / manifest.VOCABULARY_NAME
    vocabulary, built = Vocabulary.load(path), records.manifest.vocabulary
    if vocabulary.sha256 != built.sha256:
        raise UserError(
            f"{path} ({vocabulary.size} entries) isn't the vocabulary that the records in "
            f"{records} were built with ({built.size} entries). Name the right one "
            "by --vocab_file, or build the records again.")
    recorded = tokenization.recorded_normalization(vocabulary, path)
    if recorded not in (None, built.normalization):
        raise UserError(
            f"{path} was learned with normalization {recorded}, the records in {records} were "
            f"built with {built.normalization}. Name the right one by --vocab_file, "
            "or build the records again.")
    return vocabulary


def _check_text(initial: Pretrained, records: Records) -> None:
    """Raises UserError if networks have another vocabulary or normalization than the records."""
    text, built = initial.text, records.manifest.vocabulary
    if (text.vocabulary.sha256, text.normalization) != (built.sha256, built.normalization):
        raise UserError(f"{initial.source} has another vocabulary, or another "
                        f"normalization of text, than the records in {records}.")


def _check_length(config: PretrainingConfig, records: Records) -> None:
    wanted, built = config.data.max_seq_length, records.manifest.max_seq_length
    if wanted > built:
        raise UserError(f"--max_seq_length={wanted}, but the records in {records} were built with "
                        f"{built}. Leave the flag out, or build the records again.")
    length = wanted or built
    if length < built and (length < SHORTEST_ROW or records.manifest.packing != "full"):
        raise UserError(f"--max_seq_length={length}: only records of packing full are cut into "
                        f"shorter rows, of {SHORTEST_ROW} tokens at least; those in {records} were "
                        f"built with {built}. Leave the flag out, or build the records again.")
    if length > config.model.max_position_embeddings:
        raise UserError(
            f"the records in {records} are {length} tokens long, but the model has "
            f"model.max_position_embeddings={config.model.max_position_embeddings}. "
            f"Add --set model.max_position_embeddings={length}, or build shorter records.")
    if not records.manifest.shards_of("train"):
        raise UserError(f"the records in {records} hold no training examples. Build them again "
                        "with more text or a smaller --held_out_fraction.")
