"""What is known of the pre-training objectives before TensorFlow is loaded.

A new objective is a file in `objectives/` and its entry in `OBJECTIVES` here: where its class is,
the settings that are its own, and the measures by which its runs are followed.
"""

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from typing import Any

from electra_tf.config.checks import require, require_at_most
from electra_tf.platform import storage
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path


@dataclasses.dataclass(frozen=True, kw_only=True)
class Measure:
    """What a number in metrics.jsonl or in the results of an evaluation is."""

    unit: str = ""
    """Beside the number in a table: what it is a mean or a share of."""
    panel: str = ""
    """Label of the axes that it is drawn on, with the unit; "" for what isn't drawn."""
    curve: str = ""
    """Its name there, shown where a panel has several."""
    noisy: bool = True
    """Whether to smooth its curve; a schedule's corners are real."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ObjectiveConfig:
    """What is learned, and how the losses are weighted (ELECTRA, section 3.1)."""

    name: str
    """The objective."""

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name.endswith("_loss_weight"):
                require(value >= 0.0, f"objective.{field.name}", "0 or more", value)
                require_at_most("objective", self, 1e6, field.name)

    def generator_dir(self, model_dir: Path) -> Path | None:
        """Returns the directory of the run whose generator this one takes; None for its own."""
        return None

    def generator_steps(self, num_train_steps: int) -> int:
        """Returns how many of a run's steps a stage before trains its generator alone."""
        return 0

    def variant(self, name: Any) -> "ObjectiveConfig":
        """Returns the settings of the objective of a name: these, or another one's defaults.

        Raises:
            UserError: no such objective.
        """
        if not isinstance(name, str) or name not in OBJECTIVES:
            raise UserError(f"objective.name must be one of {', '.join(OBJECTIVES)}. Received: "
                            f"{shown(name)}")
        return self if name == self.name else OBJECTIVES[name].settings

    def elsewhere(self, field: str) -> str:
        """Returns which other objectives have a setting, in words; "" for none."""
        owners = [name for name, entry in OBJECTIVES.items() if hasattr(entry.settings, field)]
        if not owners:
            return ""
        listed = " or ".join(filter(None, [", ".join(owners[:-1]), owners[-1]]))
        return f"it belongs to objective.name={listed}, and this one is {self.name}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ElectraConfig(ObjectiveConfig):
    """Replaced token detection, and how its losses are weighted (ELECTRA, section 3.1)."""

    name: str = "electra"
    generator_loss_weight: float = 1.0
    """Factor of the masked-language-model loss."""
    discriminator_loss_weight: float = 50.0
    """Factor of the replaced-token-detection loss: the paper's lambda."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Electra15Config(ElectraConfig):
    """Replaced token detection whose loss counts the selected tokens alone (section 3.4)."""

    name: str = "electra_15"


@dataclasses.dataclass(frozen=True, kw_only=True)
class AdversarialConfig(ObjectiveConfig):
    """A generator that is rewarded for what the discriminator doesn't see (appendix F)."""

    name: str = "adversarial"
    policy_loss_weight: float = 1.0
    """Factor of the generator's loss, whose gradient is the policy gradient."""
    baseline_loss_weight: float = 1.0
    """Factor of the baseline's loss."""
    discriminator_loss_weight: float = 50.0
    """Factor of the replaced-token-detection loss."""


class Replacements(enum.StrEnum):
    """Where replacements come from that no network proposes."""

    UNIFORM = "uniform"
    """Every entry of the vocabulary is as likely as any other."""
    UNIGRAM = "unigram"
    """Entries are as likely as they are frequent in the training records."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class FixedGeneratorConfig(ObjectiveConfig):
    """Replaced token detection without a generator network."""

    name: str = "fixed_generator"
    replacements: Replacements = Replacements.UNIGRAM
    """What the selected tokens are replaced by."""
    discriminator_loss_weight: float = 50.0
    """Factor of the replaced-token-detection loss."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class FrozenGeneratorConfig(ObjectiveConfig):
    """Replaced token detection with a generator that was trained before."""

    name: str = "frozen_generator"
    generator: str = ""
    """Directory of the run whose generator it is, of ELECTRA or of a masked language model, with
    the same vocabulary; or a checkpoint of Google's or Hugging Face's."""
    discriminator_loss_weight: float = 50.0
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
    generator_part: float = 0.5
    """Part of training.num_train_steps in which a masked language model of the discriminator's
    size is trained: the generator, then frozen, and the discriminator's initial weights."""
    discriminator_loss_weight: float = 50.0
    """Factor of the replaced-token-detection loss."""

    def __post_init__(self):
        super().__post_init__()
        require(0.0 < self.generator_part < 1.0, "objective.generator_part", "in (0, 1)",
                self.generator_part)

    def generator_dir(self, model_dir: Path) -> Path | None:
        """Returns the first stage's, within the run's."""
        return model_dir / "generator"

    def generator_steps(self, num_train_steps: int) -> int:
        """Returns the first stage's length."""
        return min(max(1, round(self.generator_part * num_train_steps)), num_train_steps - 1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ElectricConfig(ElectraConfig):
    """An energy for every token, by noise-contrastive estimation (Clark et al., EMNLP 2020)."""

    name: str = "electric"
    generator_loss_weight: float = 1.0
    """Factor of the noise distribution's loss, that of every token given all others."""
    discriminator_loss_weight: float = 50.0
    """Factor of the noise-contrastive loss."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReplaceMlmConfig(ObjectiveConfig):
    """Masked language modelling that reads a generator's samples for [MASK] (section 3.4)."""

    name: str = "replace_mlm"
    generator_loss_weight: float = 1.0
    """Factor of the generator's masked-language-model loss."""
    restoring_loss_weight: float = 1.0
    """Factor of the encoder's loss, that of the original token at selected positions."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class AllTokensMlmConfig(ReplaceMlmConfig):
    """Prediction of all tokens of a text that a generator corrupted (section 3.4)."""

    name: str = "all_tokens_mlm"
    restoring_loss_weight: float = 1.0
    """Factor of the encoder's loss, that of the original token at every position."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class MlmConfig(ObjectiveConfig):
    """Masked language modelling, BERT's objective."""

    name: str = "mlm"
    generator_loss_weight: float = 1.0
    """Factor of the masked-language-model loss."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Entry:
    """An objective in the registry."""

    implementation: str
    """"module:class" of its `PretrainingObjective`, imported when a run needs it."""
    settings: ObjectiveConfig
    """With their defaults."""
    measures: Mapping[str, Measure]
    """Of its losses, its ratios and its scores, in the order in which they are drawn."""


_SCORES = "discriminator scores (fraction)"
_FIXED = "AUC on fixed corruptions"
_GENERATOR = {
    "generator_loss": Measure(unit="nats per masked token", curve="generator",
                              panel="generator loss (nats / masked token)"),
    "generator_accuracy": Measure(unit="of masked tokens, most likely guess", curve="generator",
                                  panel="generator accuracy (fraction)"),
}

_SAMPLED = {
    "generator_sampled_accuracy": Measure(unit="of masked tokens, guess drawn at random")}
_REPLACED = {"replaced_fraction": Measure(unit="of all tokens")}
_DISCRIMINATOR = {
    "discriminator_loss": Measure(unit="nats per token", curve="discriminator",
                                  panel="discriminator loss (nats / token)"),
    "discriminator_accuracy": Measure(unit="of all tokens"),
    "discriminator_auc": Measure(unit="area under the ROC curve", panel=_SCORES,
                                 curve="area under curve"),
    "discriminator_precision": Measure(unit="of tokens called replaced, how many are",
                                       panel=_SCORES, curve="precision"),
    "discriminator_recall": Measure(unit="of replaced tokens, how many are found",
                                    panel=_SCORES, curve="recall"),
    **_REPLACED,
}
_ELECTRA = {
    "generator_loss": _GENERATOR["generator_loss"],
    "discriminator_loss": _DISCRIMINATOR["discriminator_loss"],
    "generator_accuracy": _GENERATOR["generator_accuracy"],
    **_SAMPLED, **_DISCRIMINATOR,
}
_RESTORING = {
    **_GENERATOR, **_SAMPLED, **_REPLACED,
    "restoring_accuracy": Measure(unit="of masked tokens, the encoder's most likely guess",
                                  panel=_GENERATOR["generator_accuracy"].panel, curve="encoder")}

OBJECTIVES: dict[str, Entry] = {
    "electra": Entry(
        implementation="electra_tf.objectives.electra:ElectraObjective",
        settings=ElectraConfig(), measures=_ELECTRA),
    "mlm": Entry(implementation="electra_tf.objectives.mlm:MlmObjective", settings=MlmConfig(),
                 measures=_GENERATOR),
    "electra_15": Entry(
        implementation="electra_tf.objectives.electra_15:Electra15Objective",
        settings=Electra15Config(), measures=_ELECTRA),
    "adversarial": Entry(
        implementation="electra_tf.objectives.adversarial:AdversarialObjective",
        settings=AdversarialConfig(),
        measures=_ELECTRA | {
            "policy_loss": Measure(unit="reward times nats; its gradient is what counts",
                                   panel="policy loss (per masked token)", curve="policy"),
            "baseline_loss": Measure(unit="nats per masked token", curve="baseline",
                                     panel="baseline's loss (nats / masked token)"),
            "generator_reward": Measure(unit="the discriminator's loss at masked tokens, nats")}),
    "frozen_generator": Entry(
        implementation="electra_tf.objectives.frozen_generator:FrozenGeneratorObjective",
        settings=FrozenGeneratorConfig(), measures=_ELECTRA),
    "two_stage": Entry(
        implementation="electra_tf.objectives.two_stage:TwoStageObjective",
        settings=TwoStageConfig(), measures=_ELECTRA),
    "electric": Entry(
        implementation="electra_tf.objectives.electric:ElectricObjective",
        settings=ElectricConfig(), measures=_ELECTRA | {
            "generator_loss": Measure(unit="nats per ordinary token", curve="generator",
                                      panel="generator loss (nats / token)")}),
    "replace_mlm": Entry(
        implementation="electra_tf.objectives.replace_mlm:ReplaceMlmObjective",
        settings=ReplaceMlmConfig(),
        measures=_RESTORING | {"restoring_loss": Measure(
            unit="nats per masked token", panel="encoder's loss (nats / masked token)",
            curve="encoder")}),
    "all_tokens_mlm": Entry(
        implementation="electra_tf.objectives.all_tokens_mlm:AllTokensMlmObjective",
        settings=AllTokensMlmConfig(),
        measures=_RESTORING | {"all_tokens_loss": Measure(
            unit="nats per token", panel="encoder's loss (nats / token)", curve="encoder")}),
    "fixed_generator": Entry(
        implementation="electra_tf.objectives.fixed_generator:FixedGeneratorObjective",
        settings=FixedGeneratorConfig(), measures=_SAMPLED | _DISCRIMINATOR),
}
"""The objectives by name."""

_LOSS = {"loss": Measure(unit="weighted sum of the losses below", curve="total",
                         panel="total loss (weighted nats)")}
_OF_EVERY_RUN = {
    "unigram_precision": Measure(unit="with frequent words written in"),
    "unigram_recall": Measure(unit="with frequent words written in"),
    "unigram_auc": Measure(unit="with frequent words written in; comparable between runs",
                           panel=_FIXED, curve="by frequency (unigram)"),
    "bigram_precision": Measure(unit="with words written in that often follow the one before"),
    "bigram_recall": Measure(unit="with words written in that often follow the one before"),
    "bigram_auc": Measure(
        unit="with words written in that often follow the one before; comparable between runs",
        panel=_FIXED, curve="by the word before (bigram)"),
    "learning_rate": Measure(panel="learning rate", curve="learning rate", noisy=False),
}


def measures() -> Mapping[str, Measure]:
    """Returns what is known of every number that a run may report, in the order of its panels."""
    known = dict(_LOSS)
    for entry in OBJECTIVES.values():
        for name, measure in entry.measures.items():
            known.setdefault(name, measure)
    return known | _OF_EVERY_RUN


def panels() -> Mapping[str, Sequence[str]]:
    """Returns label -> names of the measures that are drawn on these axes, in reading order."""
    grouped: dict[str, list[str]] = {}
    for name, measure in measures().items():
        if measure.panel:
            grouped.setdefault(measure.panel, []).append(name)
    return grouped
