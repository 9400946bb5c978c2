"""The settings and metrics of every pre-training objective, without importing TensorFlow.

A new objective is a class in a module of `objectives/`, and its settings here, which name it.
"""

import importlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from annotated_types import Interval

from electra_tf.core import storage
from electra_tf.core.errors import UserError
from electra_tf.core.settings import Section, setting
from electra_tf.core.storage import Path

Weight = Annotated[float, Interval(ge=0, le=1_000_000)]


class Metric(NamedTuple):
    """Meaning of a number in metrics.jsonl or in the results of an evaluation."""

    unit: str = ""
    """Unit, or what the number is a fraction of; shown beside it."""
    panel: str = ""
    """Label of the axes that it is drawn on, with the unit; "" for a number that isn't drawn."""


_SCORES = "discriminator scores (fraction)"
_ACCURACY = "accuracy, masked tokens (fraction)"
_FIXED = "AUC, fixed-noise evaluation"
_UNIGRAM = "on tokens drawn by frequency"
_BIGRAM = "on tokens that often follow the previous one"


class ObjectiveConfig(Section, prefix="objective."):
    """The objective and the weights of its losses (ELECTRA, section 3.1)."""

    name: str
    implementation: ClassVar[str]
    """"module:class" of its `PretrainingObjective`, imported when a run needs it."""
    metrics: ClassVar[Mapping[str, Metric]] = {}
    """Numbers that no other objective reports."""
    energies: ClassVar[bool] = False
    """True if the discriminator returns energies of tokens instead of log odds of replacement."""

    def generator_dir(self, model_dir: Path) -> Path | None:
        """Returns the directory of the run whose generator this one takes; None for its own."""
        return None

    def generator_steps(self, num_train_steps: int) -> int:
        """Returns the steps of a first stage that trains the generator only; 0 without one."""
        return 0


class MlmConfig(ObjectiveConfig):
    """Masked language modelling, BERT's objective."""

    name: str = setting("mlm", "Pre-training objective.")
    implementation = "electra_tf.objectives.language_models:MlmObjective"
    generator_loss_weight: Weight = setting(1.0, "Factor of the masked-language-model loss.")


class ElectraConfig(MlmConfig):
    """Replaced token detection, and the weights of its losses (ELECTRA, section 3.1)."""

    name: str = setting("electra", "Pre-training objective.")
    implementation = "electra_tf.objectives.electra:ElectraObjective"
    discriminator_loss_weight: Weight = setting(50.0, """Factor of the replaced-token-detection
        loss: the paper's lambda.""")


class Electra15Config(ElectraConfig):
    """Replaced token detection whose loss counts selected tokens only (section 3.4)."""

    name: str = setting("electra_15", "Pre-training objective.")
    implementation = "electra_tf.objectives.electra:Electra15Objective"


_RESTORING = {
    "restoring_accuracy": Metric("of masked tokens, the encoder's most likely guess", _ACCURACY),
    "restoring_loss": Metric("nats per masked token", "encoder's loss (nats / masked token)")}


class ElectraLmConfig(ElectraConfig):
    """Replaced token detection, and a language model on the same encoder (Meng et al., 2021)."""

    name: str = setting("electra_lm", "Pre-training objective.")
    implementation = "electra_tf.objectives.electra:ElectraLmObjective"
    metrics = _RESTORING | {"restoring_accuracy_replaced": Metric("the same, of replaced tokens")}
    restoring_loss_weight: Weight = setting(1.0, """Factor of the loss of the discriminator's second
        head: the prediction of the original tokens at selected positions.""")


class ElectricConfig(ElectraConfig):
    """An energy for every token, by noise-contrastive estimation (Clark et al., EMNLP 2020)."""

    name: str = setting("electric", "Pre-training objective.")
    implementation = "electra_tf.objectives.electric:ElectricObjective"
    energies = True
    generator_loss_weight: Weight = setting(1.0, """Factor of the loss of the noise distribution,
        which predicts every token from all others.""")
    discriminator_loss_weight: Weight = setting(50.0, "Factor of the noise-contrastive loss.")


class DetectionConfig(ObjectiveConfig):
    """Replaced token detection whose generator has another objective, or none."""

    discriminator_loss_weight: Weight = setting(50.0, """Factor of the replaced-token-detection
        loss.""")


class AdversarialConfig(DetectionConfig):
    """A generator that is rewarded for fooling the discriminator (appendix F)."""

    name: str = setting("adversarial", "Pre-training objective.")
    implementation = "electra_tf.objectives.adversarial:AdversarialObjective"
    metrics = {
        "policy_loss": Metric(
            "reward times nats; its gradient is what counts", "policy loss (per masked token)"),
        "baseline_loss": Metric("nats per masked token", "baseline's loss (nats / masked token)"),
        "generator_reward": Metric("the discriminator's loss at masked tokens, nats")}
    policy_loss_weight: Weight = setting(1.0, """Factor of the generator's loss, whose gradient is
        the policy gradient.""")
    baseline_loss_weight: Weight = setting(1.0, "Factor of the baseline's loss.")


class FixedGeneratorConfig(DetectionConfig):
    """Replaced token detection without a generator network."""

    name: str = setting("fixed_generator", "Pre-training objective.")
    implementation = "electra_tf.objectives.frozen_generator:FixedGeneratorObjective"
    replacements: Literal["uniform", "unigram"] = setting(
        "unigram", """Distribution that replacements are drawn from. uniform gives all tokens of the
        vocabulary equal probability; unigram gives the frequencies of the training records.""")


class FrozenGeneratorConfig(DetectionConfig):
    """Replaced token detection with the generator of an earlier run."""

    name: str = setting("frozen_generator", "Pre-training objective.")
    implementation = "electra_tf.objectives.frozen_generator:FrozenGeneratorObjective"
    generator: str = setting("", """The generator to load: a run of objective.name=electra or mlm
        with the same vocabulary, or a checkpoint in Google's or Hugging Face's format.""")

    def generator_dir(self, model_dir: Path) -> Path | None:
        """Returns the directory that the settings name; raises `UserError` without one."""
        if not self.generator:
            raise UserError("objective.name=frozen_generator needs a generator: "
                            "--set objective.generator=DIRECTORY of the run that trained it.")
        return storage.path(self.generator)


class TwoStageConfig(DetectionConfig):
    """The generator alone first, then the discriminator from its weights (section 3.2)."""

    name: str = setting("two_stage", "Pre-training objective.")
    implementation = "electra_tf.objectives.frozen_generator:TwoStageObjective"
    generator_part: Annotated[float, Interval(gt=0, lt=1)] = setting(
        0.5, """Fraction of the steps for the first stage: a masked language model of the
        discriminator's size, which becomes the frozen generator and the discriminator's initial
        weights.""")

    def generator_dir(self, model_dir: Path) -> Path | None:
        """Returns the first stage's directory, within the run's."""
        return model_dir / "generator"

    def generator_steps(self, num_train_steps: int) -> int:
        """Returns the number of steps of the first stage."""
        return min(max(1, round(self.generator_part * num_train_steps)), num_train_steps - 1)


class ReplaceMlmConfig(MlmConfig):
    """Masked language modelling that reads a generator's samples for [MASK] (section 3.4)."""

    name: str = setting("replace_mlm", "Pre-training objective.")
    implementation = "electra_tf.objectives.language_models:ReplaceMlmObjective"
    metrics = _RESTORING
    restoring_loss_weight: Weight = setting(1.0, """Factor of the encoder's loss: the prediction of
        the original tokens at selected positions.""")


class AllTokensMlmConfig(MlmConfig):
    """Prediction of all tokens of a text that a generator corrupted (section 3.4)."""

    name: str = setting("all_tokens_mlm", "Pre-training objective.")
    implementation = "electra_tf.objectives.language_models:AllTokensMlmObjective"
    metrics = {"all_tokens_loss": Metric("nats per token", "encoder's loss (nats / token)")}
    all_tokens_loss_weight: Weight = setting(1.0, """Factor of the encoder's loss: the prediction of
        the original tokens at all positions.""")


OBJECTIVES: dict[str, ObjectiveConfig] = {config.name: config for config in (
    ElectraConfig(), MlmConfig(), Electra15Config(), ElectraLmConfig(), AdversarialConfig(),
    FrozenGeneratorConfig(), TwoStageConfig(), ElectricConfig(), ReplaceMlmConfig(),
    AllTokensMlmConfig(), FixedGeneratorConfig())}
"""Name -> default settings of every objective."""
_SHARED = {
    "loss": Metric("weighted sum of the losses below", "total loss (weighted nats)"),
    "generator_loss": Metric("nats per masked token", "generator loss (nats / masked token)"),
    "discriminator_loss": Metric("nats per token", "discriminator loss (nats / token)"),
    "generator_accuracy": Metric("of masked tokens, most likely guess", _ACCURACY),
    "generator_sampled_accuracy": Metric("of masked tokens, guess drawn at random"),
    "discriminator_accuracy": Metric("of all tokens"),
    "discriminator_auc": Metric("area under the ROC curve", _SCORES),
    "discriminator_precision": Metric("of tokens called replaced, how many are", _SCORES),
    "discriminator_recall": Metric("of replaced tokens, how many are detected", _SCORES),
    "discriminator_recall_at_p90": Metric("the same at the threshold of 90 % precision"),
    "replaced_fraction": Metric("of all tokens"),
}
_OF_EVERY_RUN = {
    "unigram_precision": Metric(_UNIGRAM), "unigram_recall": Metric(_UNIGRAM),
    "unigram_auc": Metric(f"{_UNIGRAM}; comparable between runs", _FIXED),
    "bigram_precision": Metric(_BIGRAM), "bigram_recall": Metric(_BIGRAM),
    "bigram_auc": Metric(f"{_BIGRAM}; comparable between runs", _FIXED),
    "learning_rate": Metric("", "learning rate"),
}


def objective_class(name: str) -> Any:
    """Returns the subclass of `PretrainingObjective`; its instances take a configuration."""
    module, _, attribute = OBJECTIVES[name].implementation.partition(":")
    return getattr(importlib.import_module(module), attribute)


def all_metrics() -> Mapping[str, Metric]:
    """Returns every number that a run may report, in the order of its panels."""
    # Losses first, then those of single objectives, then evaluations: the order of panels.
    own = {name: metric for objective in OBJECTIVES.values()
           for name, metric in objective.metrics.items()}
    return _SHARED | own | _OF_EVERY_RUN


def panels() -> Mapping[str, Sequence[str]]:
    """Returns label -> names of the metrics that are drawn on these axes, in reading order."""
    grouped: dict[str, list[str]] = {}
    for name, metric in all_metrics().items():
        if metric.panel:
            grouped.setdefault(metric.panel, []).append(name)
    return grouped
