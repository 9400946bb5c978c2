"""The registry of pre-training objectives, readable without TensorFlow.

A new objective is a class in `objectives/` and its entry in `OBJECTIVES` here: the place of its
class, its own settings, and the measures by which its runs are followed.
"""

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from typing import Annotated

from annotated_types import Interval

from electra_tf.platform import storage
from electra_tf.platform.errors import UserError
from electra_tf.platform.settings import Section
from electra_tf.platform.storage import Path

Weight = Annotated[float, Interval(ge=0, le=1_000_000)]


@dataclasses.dataclass(frozen=True)
class Measure:
    """Meaning of a number in metrics.jsonl or in the results of an evaluation."""

    unit: str = ""
    """Shown beside the number in a table: what it is a mean or a fraction of."""
    panel: str = ""
    """Label of the axes that it is drawn on, with the unit; "" for a number that isn't drawn."""
    curve: str = ""
    """Label of its curve, shown where a panel has several."""
    noisy: bool = True
    """Whether to smooth its curve; schedules are drawn as they are."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ObjectiveConfig(Section, prefix="objective."):
    """The objective and the weights of its losses (ELECTRA, section 3.1)."""

    name: str
    """The objective."""

    def variants(self) -> Mapping[str, "ObjectiveConfig"]:
        """Returns the default settings of every objective."""
        return {name: entry.settings for name, entry in OBJECTIVES.items()}

    def generator_dir(self, model_dir: Path) -> Path | None:
        """Returns the directory of the run whose generator this one takes; None for its own."""
        return None

    def generator_steps(self, num_train_steps: int) -> int:
        """Returns how many of a run's steps a first stage trains its generator alone."""
        return 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class ElectraConfig(ObjectiveConfig):
    """Replaced token detection, and the weights of its losses (ELECTRA, section 3.1)."""

    name: str = "electra"
    generator_loss_weight: Weight = 1.0
    """Factor of the masked-language-model loss."""
    discriminator_loss_weight: Weight = 50.0
    """Factor of the replaced-token-detection loss: the paper's lambda."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Electra15Config(ElectraConfig):
    """Replaced token detection whose loss counts the selected tokens alone (section 3.4)."""

    name: str = "electra_15"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ElectricConfig(ElectraConfig):
    """An energy for every token, by noise-contrastive estimation (Clark et al., EMNLP 2020)."""

    name: str = "electric"
    generator_loss_weight: Weight = 1.0
    """Factor of the noise distribution's loss, that of every token given all others."""
    discriminator_loss_weight: Weight = 50.0
    """Factor of the noise-contrastive loss."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class AdversarialConfig(ObjectiveConfig):
    """A generator that is rewarded for fooling the discriminator (appendix F)."""

    name: str = "adversarial"
    policy_loss_weight: Weight = 1.0
    """Factor of the generator's loss, whose gradient is the policy gradient."""
    baseline_loss_weight: Weight = 1.0
    """Factor of the baseline's loss."""
    discriminator_loss_weight: Weight = 50.0
    """Factor of the replaced-token-detection loss."""


class Replacements(enum.StrEnum):
    """Distribution of replacements without a generator network."""

    UNIFORM = "uniform"
    """Every entry of the vocabulary is as likely as any other."""
    UNIGRAM = "unigram"
    """Entries are as likely as they are frequent in the training records."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class FixedGeneratorConfig(ObjectiveConfig):
    """Replaced token detection without a generator network."""

    name: str = "fixed_generator"
    replacements: Replacements = Replacements.UNIGRAM
    """Distribution that the selected tokens are replaced from."""
    discriminator_loss_weight: Weight = 50.0
    """Factor of the replaced-token-detection loss."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class FrozenGeneratorConfig(ObjectiveConfig):
    """Replaced token detection with a generator that was trained before."""

    name: str = "frozen_generator"
    generator: str = ""
    """Directory of the run whose generator it is, of ELECTRA or of a masked language model, with
    the same vocabulary; or a checkpoint of Google's or Hugging Face's."""
    discriminator_loss_weight: Weight = 50.0
    """Factor of the replaced-token-detection loss."""

    def generator_dir(self, model_dir: Path) -> Path | None:
        """Returns the given one."""
        if not self.generator:
            raise UserError("objective.name=frozen_generator needs a generator: "
                            "--set objective.generator=DIRECTORY of the run that trained it.")
        return storage.path(self.generator)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TwoStageConfig(ObjectiveConfig):
    """The generator alone first, then the discriminator from its weights (section 3.2)."""

    name: str = "two_stage"
    generator_part: Annotated[float, Interval(gt=0, lt=1)] = 0.5
    """Part of training.num_train_steps in which a masked language model of the discriminator's
    size is trained: the generator, then frozen, and the discriminator's initial weights."""
    discriminator_loss_weight: Weight = 50.0
    """Factor of the replaced-token-detection loss."""

    def generator_dir(self, model_dir: Path) -> Path | None:
        """Returns the first stage's, within the run's."""
        return model_dir / "generator"

    def generator_steps(self, num_train_steps: int) -> int:
        """Returns the first stage's length."""
        return min(max(1, round(self.generator_part * num_train_steps)), num_train_steps - 1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReplaceMlmConfig(ObjectiveConfig):
    """Masked language modelling that reads a generator's samples for [MASK] (section 3.4)."""

    name: str = "replace_mlm"
    generator_loss_weight: Weight = 1.0
    """Factor of the generator's masked-language-model loss."""
    restoring_loss_weight: Weight = 1.0
    """Factor of the encoder's loss, that of the original token at selected positions."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class AllTokensMlmConfig(ReplaceMlmConfig):
    """Prediction of all tokens of a text that a generator corrupted (section 3.4)."""

    name: str = "all_tokens_mlm"
    restoring_loss_weight: Weight = 1.0
    """Factor of the encoder's loss, that of the original token at every position."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class MlmConfig(ObjectiveConfig):
    """Masked language modelling, BERT's objective."""

    name: str = "mlm"
    generator_loss_weight: Weight = 1.0
    """Factor of the masked-language-model loss."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Entry:
    """An objective in the registry."""

    implementation: str
    """"module:class" of its `PretrainingObjective`, imported when a run needs it."""
    settings: ObjectiveConfig
    """With their defaults."""
    measures: Mapping[str, Measure]
    """Its losses, ratios and scores, in the order in which they are drawn."""


_SCORES = "discriminator scores (fraction)"
_ACCURACY = "generator accuracy (fraction)"
_GENERATOR = {
    "generator_loss": Measure(
        "nats per masked token", "generator loss (nats / masked token)", "generator"),
    "generator_accuracy": Measure("of masked tokens, most likely guess", _ACCURACY, "generator"),
}
_SAMPLED = {"generator_sampled_accuracy": Measure("of masked tokens, guess drawn at random")}
_REPLACED = {"replaced_fraction": Measure("of all tokens")}
_DISCRIMINATOR = {
    "discriminator_loss": Measure(
        "nats per token", "discriminator loss (nats / token)", "discriminator"),
    "discriminator_accuracy": Measure("of all tokens"),
    "discriminator_auc": Measure("area under the ROC curve", _SCORES, "area under curve"),
    "discriminator_precision": Measure(
        "of tokens called replaced, how many are", _SCORES, "precision"),
    "discriminator_recall": Measure("of replaced tokens, how many are found", _SCORES, "recall"),
    **_REPLACED,
}
_ELECTRA = {name: (_GENERATOR | _DISCRIMINATOR | _SAMPLED)[name] for name in (
    "generator_loss", "discriminator_loss", "generator_accuracy", *_SAMPLED, *_DISCRIMINATOR)}
_RESTORING = {
    **_GENERATOR, **_SAMPLED, **_REPLACED,
    "restoring_accuracy": Measure(
        "of masked tokens, the encoder's most likely guess", _ACCURACY, "encoder")}


def _entry(place: str, settings: ObjectiveConfig, measures: Mapping[str, Measure]) -> Entry:
    """Returns the entry of an objective, "module:class" in `objectives`."""
    return Entry(implementation=f"electra_tf.objectives.{place}", settings=settings,
                 measures=measures)


_ENTRIES = (
    _entry("electra:ElectraObjective", ElectraConfig(), _ELECTRA),
    _entry("language_models:MlmObjective", MlmConfig(), _GENERATOR),
    _entry("electra:Electra15Objective", Electra15Config(), _ELECTRA),
    _entry("adversarial:AdversarialObjective", AdversarialConfig(), _ELECTRA | {
        "policy_loss": Measure("reward times nats; its gradient is what counts",
                               "policy loss (per masked token)", "policy"),
        "baseline_loss": Measure("nats per masked token", "baseline's loss (nats / masked token)",
                                 "baseline"),
        "generator_reward": Measure("the discriminator's loss at masked tokens, nats")}),
    _entry("given_generator:FrozenGeneratorObjective", FrozenGeneratorConfig(), _ELECTRA),
    _entry("given_generator:TwoStageObjective", TwoStageConfig(), _ELECTRA),
    _entry("electric:ElectricObjective", ElectricConfig(), _ELECTRA | {"generator_loss": Measure(
        "nats per ordinary token", "generator loss (nats / token)", "generator")}),
    _entry("language_models:ReplaceMlmObjective", ReplaceMlmConfig(), _RESTORING | {
        "restoring_loss": Measure("nats per masked token", "encoder's loss (nats / masked token)",
                                  "encoder")}),
    _entry("language_models:AllTokensMlmObjective", AllTokensMlmConfig(), _RESTORING | {
        "all_tokens_loss": Measure("nats per token", "encoder's loss (nats / token)", "encoder")}),
    _entry("given_generator:FixedGeneratorObjective", FixedGeneratorConfig(),
           _SAMPLED | _DISCRIMINATOR),
)
OBJECTIVES: dict[str, Entry] = {entry.settings.name: entry for entry in _ENTRIES}
"""The objectives by name."""

_LOSS = {"loss": Measure("weighted sum of the losses below", "total loss (weighted nats)", "total")}
_FIXED = "AUC on fixed corruptions"
_UNIGRAM = "with frequent words written in"
_BIGRAM = "with words written in that often follow the one before"
_OF_EVERY_RUN = {
    "unigram_precision": Measure(_UNIGRAM),
    "unigram_recall": Measure(_UNIGRAM),
    "unigram_auc": Measure(
        f"{_UNIGRAM}; comparable between runs", _FIXED, "by frequency (unigram)"),
    "bigram_precision": Measure(_BIGRAM),
    "bigram_recall": Measure(_BIGRAM),
    "bigram_auc": Measure(
        f"{_BIGRAM}; comparable between runs", _FIXED, "by the word before (bigram)"),
    "learning_rate": Measure("", "learning rate", "learning rate", noisy=False),
}


def measures() -> Mapping[str, Measure]:
    """Returns every number that a run may report, in the order of its panels."""
    known = dict(_LOSS)
    for entry in OBJECTIVES.values():
        known |= {name: measure for name, measure in entry.measures.items() if name not in known}
    return known | _OF_EVERY_RUN


def panels() -> Mapping[str, Sequence[str]]:
    """Returns label -> names of the measures that are drawn on these axes, in reading order."""
    grouped: dict[str, list[str]] = {}
    for name, measure in measures().items():
        if measure.panel:
            grouped.setdefault(measure.panel, []).append(name)
    return grouped
