"""Settings of fine-tuning, and the recipe of each encoder size."""

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, get_args

from annotated_types import Interval

from electra_tf.config.model import Few, InitializationConfig, ModelConfig
from electra_tf.config.optimization import TRAINING, OptimizerConfig
from electra_tf.config.runtime import BatchSize, Precision, RuntimeConfig
from electra_tf.platform.errors import UserError
from electra_tf.platform.settings import LARGEST_COUNT, Probability, Section, require

SCRATCH = "none"
"""Value of `--init_checkpoint` that trains from scratch."""
_TUNABLE = ("task", "optimizer", "training")
_DROPOUT = ("model.hidden_dropout", "model.attention_dropout")
_FIXED = {f"training.{name}" for name in (
    "seed", "precision", "num_trials", "num_folds", "distillation_hidden_weight")}
Length = Annotated[int, Interval(gt=0, le=1 << 16)]
PoolingMode = Literal["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]
"""A kind of vector of a text, by its name in sentence-transformers."""
POOLING_MODES: tuple[str, ...] = get_args(PoolingMode)
"""In the order in which sentence-transformers concatenates several."""
# Values are the names in lower case.
LongTexts = enum.StrEnum("LongTexts", "TRUNCATE HEAD_TAIL WINDOWS")
WindowPooling = enum.StrEnum("WindowPooling", "MEAN MAX LOG_ODDS")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskConfig(Section, prefix="task."):
    """Conversion of examples to rows, and of outputs to answers."""

    max_seq_length: Annotated[int, Interval(ge=8, le=1 << 16), TRAINING] = 128
    """Longest row, in tokens; longer texts are cut, longer contexts are read in sliding windows.
    Extractive QA takes 512, or the longest row of the encoder."""
    swap_pairs: Annotated[bool, TRAINING] = False
    """Train on every pair in both orders; MRPC and STS-B do."""
    label_threshold: Annotated[Probability, TRAINING] = 0.5
    """Multi-label: predict labels whose probability is at least this; 0 searches the value with the
    best micro F1 on dev."""
    dropout: Probability = 0.1
    """Dropout rate of the vectors that the output layer reads."""
    hidden_layer: bool = False
    """Put a dense GELU layer first (classification, regression), as in Hugging Face's head."""
    long_texts: Annotated[LongTexts, TRAINING] = LongTexts.TRUNCATE
    """Texts over max_seq_length (classification, regression): truncate keeps their first tokens,
    head_tail a quarter from the start and the rest from the end; windows reads all of them in
    sliding windows, whose outputs are pooled."""
    window_pooling: Annotated[WindowPooling, TRAINING] = WindowPooling.MEAN
    """Output of a text in windows: mean of the windows' probabilities (of their numbers for
    regression), max of their logits, or log_odds, the mean of their logits."""
    max_windows: Annotated[int, Interval(gt=0, le=1 << 16), TRAINING] = 8
    """Windows of a text that training reads, evenly spaced; predictions read all."""
    doc_stride: Annotated[int, Interval(ge=0, le=1 << 16), TRAINING] = 0
    """Tokens from the start of one sliding window over a context or a text to the start of the
    next. 0: 128 for extractive QA, half of max_seq_length for texts."""
    max_query_length: Length = 64
    """Tokens kept of a question."""
    max_answer_length: Length = 30
    """Longest answer, in tokens."""
    beam_size: Few = 20
    """Number of answer starts that are considered, and of ends for each start."""
    ends_given_starts: bool = True
    """Score the end of an answer given its start, as XLNet; otherwise independently, as BERT."""
    answerability: bool = True
    """Learn to predict if a question has an answer."""
    answerability_weight: Annotated[float, Interval(ge=0, le=1_000_000)] = 0.5
    """Factor of the answerability loss."""
    answerable_by_window: bool = True
    """In training, a window without the answer counts as unanswerable; otherwise it counts as
    answerable if its question is, as in Google's code."""
    tagging_loss_by_sentence: bool = False
    """Divide the loss of tags by the number of sentences, not words, as in Google's code."""
    class_weights: Annotated[str, TRAINING] = ""
    """Factor of each label's loss (classification, tagging): balanced for n / (k n_c) of the
    training examples, as scikit-learn; or a number per label, rare=5,common=1, or in the order of
    the labels. Default: equal weights."""
    label_smoothing: Annotated[Probability, TRAINING] = 0.0
    """Share of the target that all labels get equally (classification, tagging), as PyTorch's."""
    pooling: Annotated[PoolingMode, TRAINING] = "mean"
    """Vector of a text (sentence embeddings): the mean over its tokens, the vector of [CLS], ..."""
    temperature: Annotated[float, Interval(ge=0.001, le=1000), TRAINING] = 0.05
    """Divisor of cosine similarities in the loss of sentence embeddings."""
    no_answer_threshold: Annotated[float, Interval(le=1_000_000)] = -2.75
    """Score above which a question is unanswerable if no threshold is searched; Google's value."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinetuningOptimizerConfig(OptimizerConfig):
    """The optimizer of pre-training, with a learning rate per layer."""

    layerwise_decay: Annotated[float, Interval(gt=0, le=1), TRAINING] = 0.8
    """Learning-rate factor of each layer relative to the layer above."""
    layerwise_decay_skips_one: bool = False
    """Put the top layer two steps of decay below the head instead of one, as Google's code does."""

    def warmup(self, num_train_steps: int) -> float:
        """Returns the number of warm-up steps, by default a tenth of the run without rounding."""
        return self.warmup_steps if self.warmup_steps >= 0 else num_train_steps * 0.1


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinetuningTrainingConfig(Section, prefix="training."):
    """Length of the run, batch, trials and precision."""

    num_train_epochs: Annotated[float, Interval(gt=0, le=1_000_000), TRAINING] = 3.0
    """Passes over the training examples; RTE and STS-B take 10, extractive QA 2."""
    train_batch_size: Annotated[BatchSize, TRAINING] = 32
    """Examples per step, over all devices."""
    seed: Annotated[int, Interval(ge=0, le=LARGEST_COUNT // 2), TRAINING] = 1
    """Seed of the head's initial weights, the order and dropout; trial t takes seed + t."""
    precision: Annotated[Precision, TRAINING] = Precision.AUTO
    """Type of activations and matmuls; auto: bfloat16 where the device multiplies it
    natively. float16 comes with loss scaling."""
    num_trials: Annotated[int, Interval(gt=0, le=10_000), TRAINING] = 1
    """Independent runs; the report has the scores of each, their mean, median and spread."""
    num_folds: Annotated[int, Interval(ge=0, le=1_000), TRAINING] = 0
    """Stratified cross-validation on --train: one trial per fold, then the kept model is trained on
    all examples. Default: no cross-validation."""
    keep_best: Annotated[bool, TRAINING] = False
    """Keep the weights of the epoch with the best score on dev instead of the last epoch's."""
    early_stopping: Annotated[int, Interval(ge=0, le=1_000_000), TRAINING] = 0
    """Epochs without a better score on dev after which a trial ends; it keeps its best epoch.
    Default: never."""
    freeze_layers: Annotated[int, Interval(ge=-1), TRAINING] = 0
    """Lowest layers that keep their weights, with the embeddings; -1 freezes the whole encoder."""
    distillation_temperature: Annotated[float, Interval(gt=0, le=1000), TRAINING] = 2.0
    """Divisor of logits in the loss of the probabilities of --teacher."""
    distillation_weight: Annotated[float, Interval(ge=0, le=1), TRAINING] = 0.5
    """Weight of that loss; the loss of the labels has the rest of 1."""
    distillation_hidden_weight: Annotated[float, Interval(ge=0, le=1_000_000), TRAINING] = 0.0
    """Weight of the cosine distance of the teacher's and the student's projected [CLS] vector."""

    @property
    def keeps_best_epoch(self) -> bool:
        """Returns True if the best epoch on dev is kept, as early stopping implies."""
        return self.keep_best or self.early_stopping > 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinetuningConfig:
    """Settings of a run. All sections but `runtime` affect its result."""

    model: ModelConfig = ModelConfig()
    initialization: InitializationConfig = InitializationConfig()
    task: TaskConfig = TaskConfig()
    optimizer: FinetuningOptimizerConfig = FinetuningOptimizerConfig()
    training: FinetuningTrainingConfig = FinetuningTrainingConfig()
    runtime: RuntimeConfig = RuntimeConfig()

    def __post_init__(self) -> None:
        self.initialization.require_width(self.model)
        max_length, layers = self.model.max_position_embeddings, self.model.num_layers
        require(self.task.max_seq_length <= max_length, "task.max_seq_length",
                f"at most model.max_position_embeddings={max_length}, the longest row of the "
                "encoder", self.task.max_seq_length)
        for name in ("window_pooling", "max_windows"):
            value = getattr(self.task, name)
            require(self.task.long_texts is LongTexts.WINDOWS or value == getattr(TaskConfig, name),
                    f"--{name}", "left out without --long_texts=windows", str(value))
        require(self.training.freeze_layers <= layers, "training.freeze_layers",
                f"at most model.num_layers={layers}", self.training.freeze_layers)

    @staticmethod
    def require_tunable(grid: Mapping[str, Sequence[object]]) -> None:
        """Raises `UserError` for several values of a setting that isn't one of a trial."""
        for name, values in grid.items():
            if name in _FIXED or not (name in _DROPOUT or name.split(".")[0] in _TUNABLE):
                raise UserError(f"{name} takes one value; several with commas are for the settings "
                                "of a trial, such as --learning_rate, and --num_trials for seeds. "
                                f"Received: {', '.join(map(str, values))}")

    def num_train_steps(self, examples: int) -> int:
        """Returns the number of steps of a run on `examples`, at least 1, as in Google's code."""
        per_epoch = -(-examples // self.training.train_batch_size)
        return max(1, int(per_epoch * self.training.num_train_epochs))


def finetuning_config(model: ModelConfig) -> FinetuningConfig:
    """Returns the general recipe: the paper's appendix B, table 7, by the encoder's width.

    Weight decay is that of Google's code, 0.01; the table says 0. Dropout is 0.1, also for an
    encoder that was pre-trained with another dropout rate.
    """
    base, large = model.hidden_size >= 768, model.hidden_size >= 1024
    learning_rate = 5e-5 if large else 1e-4 if base else 3e-4
    return FinetuningConfig(
        model=dataclasses.replace(model, hidden_dropout=0.1, attention_dropout=0.1),
        task=TaskConfig(max_seq_length=min(128, model.max_position_embeddings)),
        optimizer=FinetuningOptimizerConfig(
            learning_rate=learning_rate, layerwise_decay=0.9 if large else 0.8))
