"""Settings of fine-tuning, and the recipes: what suits a task and a size of encoder."""

import dataclasses

from electra_tf.config.checks import (
    LARGEST_COUNT,
    require,
    require_at_most,
    require_positive,
    require_probability,
)
from electra_tf.config.initialization import InitializationConfig
from electra_tf.config.model import ModelConfig
from electra_tf.config.optimization import OptimizerConfig
from electra_tf.config.pretraining import LARGEST_BATCH, Precision
from electra_tf.config.runtime import RuntimeConfig

WARMUP_PROPORTION = 0.1


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskConfig:
    """How examples become rows, and rows answers."""

    max_seq_length: int = 128
    """Longest row, in tokens; texts are cut, contexts of questions read through windows. Questions
    take 512, or what the encoder can read."""
    swap_pairs: bool = False
    """Train on every pair in both orders; MRPC and STS-B do."""
    dropout: float = 0.1
    """Of the vectors that the output layer reads."""
    hidden_layer: bool = False
    """For classes and numbers: a dense layer with GELU before the output layer. Hugging Face's head
    has it, Google's hasn't."""
    doc_stride: int = 128
    """Word pieces from one window over a context to the next."""
    max_query_length: int = 64
    """Word pieces kept of a question."""
    max_answer_length: int = 30
    """Word pieces of the longest answer."""
    n_best: int = 20
    """Answers kept per question."""
    beam_size: int = 20
    """Starts that are looked at, and ends for each of them."""
    ends_given_starts: bool = True
    """Score the end of an answer given its start, as XLNet does; else by itself, as BERT does."""
    answerability: bool = True
    """Learn whether a question has an answer."""
    answerability_weight: float = 0.5
    """Factor of its loss."""
    answerable_by_window: bool = True
    """In training, a window without the answer counts as one of a question without an answer; else
    it counts as answerable if its question is, as in Google's code."""
    tagging_loss_by_sentence: bool = False
    """Divide the loss of tags by the number of sentences, not of words: a sentence's loss is the
    sum over its words, as in Google's code."""
    feature_based: bool = False
    """For tagging: a frozen encoder's last four layers are read by a BiLSTM of two layers, which
    is trained alone (BERT, section 5.3)."""
    no_answer_threshold: float = -2.75
    """Above it a question counts as unanswerable, where no threshold is searched: the value of
    Google's submission."""

    def __post_init__(self):
        require_positive("task", self, "doc_stride", "max_query_length", "max_answer_length",
                         "n_best", "beam_size")
        require_probability("task", self, "dropout")
        require_at_most("task", self, 1 << 16, "max_seq_length", "doc_stride",
                        "max_query_length", "max_answer_length")
        require_at_most("task", self, 1000, "n_best", "beam_size")
        require_at_most("task", self, 1e6, "answerability_weight", "no_answer_threshold")
        require(self.max_seq_length >= 8, "task.max_seq_length", "8 or more", self.max_seq_length)
        require(self.answerability_weight >= 0.0, "task.answerability_weight", "0 or more",
                self.answerability_weight)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinetuningOptimizerConfig(OptimizerConfig):
    """The optimizer of pre-training, with a rate per layer."""

    layerwise_decay: float = 0.8
    """Every layer learns at so much of the rate of the one above it."""
    layerwise_decay_skips_one: bool = False
    """Put the top layer two steps below the head, not one: what Google's code does and its
    published scores rest on."""

    def __post_init__(self):
        super().__post_init__()
        require(0.0 < self.layerwise_decay <= 1.0, "optimizer.layerwise_decay", "in (0, 1]",
                self.layerwise_decay)

    def warmup(self, num_train_steps: int) -> float:
        """Returns the number of warm-up steps: a tenth of the run, unless set.

        Not rounded, as in Google's code: 3.3 for a run of 33 steps.
        """
        if self.warmup_steps >= 0:
            return self.warmup_steps
        return num_train_steps * WARMUP_PROPORTION


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinetuningTrainingConfig:
    """How long, with what batch, how often."""

    num_train_epochs: float = 3.0
    """Passes over the training examples; RTE and STS-B take 10, questions 2."""
    train_batch_size: int = 32
    """Examples per step, over all devices."""
    seed: int = 1
    """Of the head's initial weights, the order and dropout; trial t takes seed + t."""
    precision: Precision = Precision.AUTO
    """Type of activations and matrix products; auto: bfloat16 where the device multiplies it
    natively. float16 comes with loss scaling."""
    num_trials: int = 1
    """Independent runs; scores are reported of each, and their mean, median and spread."""
    keep_best: bool = False
    """Keep the weights of the epoch with the best score on dev, not of the last."""
    early_stopping: int = 0
    """Stop after so many epochs without a better score on dev; 0 never."""
    freeze_layers: int = 0
    """So many layers from below, and the embeddings, keep their weights; -1 freezes the whole
    encoder."""

    def __post_init__(self):
        require_positive("training", self, "num_train_epochs", "train_batch_size", "num_trials")
        require(self.seed >= 0, "training.seed", "0 or more", self.seed)
        require_at_most("training", self, LARGEST_BATCH, "train_batch_size")
        require_at_most("training", self, LARGEST_COUNT // 2, "seed")  # Trials add to it.
        require_at_most("training", self, 1e6, "num_train_epochs")
        require_at_most("training", self, 10_000, "num_trials", "early_stopping")
        require(self.early_stopping >= 0, "training.early_stopping", "0 or more",
                self.early_stopping)
        require(self.freeze_layers >= -1, "training.freeze_layers", "-1 (all) or more",
                self.freeze_layers)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinetuningConfig:
    """A whole run. All sections but `runtime` decide its result."""

    model: ModelConfig = ModelConfig()
    initialization: InitializationConfig = InitializationConfig()
    task: TaskConfig = TaskConfig()
    optimizer: FinetuningOptimizerConfig = FinetuningOptimizerConfig()
    training: FinetuningTrainingConfig = FinetuningTrainingConfig()
    runtime: RuntimeConfig = RuntimeConfig()

    def __post_init__(self):
        self.initialization.require_room(self.model)
        longest, layers = self.model.max_position_embeddings, self.model.num_layers
        require(self.task.max_seq_length <= longest, "task.max_seq_length",
                f"at most model.max_position_embeddings={longest}, all that the encoder can read",
                self.task.max_seq_length)
        require(self.training.freeze_layers <= layers, "training.freeze_layers",
                f"at most model.num_layers={layers}", self.training.freeze_layers)

    def num_train_steps(self, examples: int) -> int:
        """Returns the steps of a run on so many training examples, at least 1.

        Whole ones: what is left of a fraction of an epoch is dropped, as in Google's code.
        """
        per_epoch = -(-examples // self.training.train_batch_size)
        return max(1, int(per_epoch * self.training.num_train_epochs))


BASE, LARGE = 768, 1024
"""Hidden sizes of the paper's larger encoders."""


def finetuning_config(model: ModelConfig, *, feature_based: bool = False) -> FinetuningConfig:
    """Returns the general recipe: the paper's appendix B, table 7, by the encoder's width.

    Weight decay is that of Google's code, 0.01; the table says 0. Dropout is 0.1, whatever the
    encoder was pre-trained with.

    Args:
        model: the encoder's settings.
        feature_based: the encoder is frozen; what reads it learns at 1e-3.
    """
    if model.hidden_size < BASE:
        rate, decay = 3e-4, 0.8
    elif model.hidden_size < LARGE:
        rate, decay = 1e-4, 0.8
    else:
        rate, decay = 5e-5, 0.9
    if feature_based:
        rate = 1e-3
    longest = min(128, model.max_position_embeddings)
    model = dataclasses.replace(model, hidden_dropout=0.1, attention_dropout=0.1)
    return FinetuningConfig(
        model=model,
        task=TaskConfig(max_seq_length=longest, feature_based=feature_based),
        optimizer=FinetuningOptimizerConfig(learning_rate=rate, layerwise_decay=decay),
        training=FinetuningTrainingConfig(num_train_epochs=3.0))
