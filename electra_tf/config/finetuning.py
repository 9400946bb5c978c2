"""Settings of fine-tuning, and the recipe of each encoder size."""

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, get_args

from annotated_types import Interval

from electra_tf.config.model import (
    COOCCURRENCE,
    Few,
    InitializationConfig,
    ModelConfig,
    Positions,
)
from electra_tf.config.optimization import TRAINING, OptimizerConfig
from electra_tf.config.runtime import BatchSize, Precision, RuntimeConfig
from electra_tf.core.errors import UserError
from electra_tf.core.settings import LARGEST_COUNT, Probability, Section, require, setting

SCRATCH = "none"
"""Value of `--init_checkpoint` that trains from scratch."""
_TUNABLE = ("task", "optimizer", "training")
_DROPOUT = ("model.hidden_dropout", "model.attention_dropout")
_FIXED = {f"training.{name}" for name in ("seed", "precision", "num_trials", "num_folds")}
Length = Annotated[int, Interval(gt=0, le=1 << 16)]
PoolingMode = Literal["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]
"""A kind of vector of a text, by its name in sentence-transformers."""
POOLING_MODES: tuple[str, ...] = get_args(PoolingMode)
"""In the order in which sentence-transformers concatenates those that switches select."""
# Values are the names in lower case.
LongTexts = enum.StrEnum("LongTexts", "TRUNCATE HEAD_TAIL WINDOWS")
WindowPooling = enum.StrEnum("WindowPooling", "MEAN MAX LOG_ODDS")


class TaskConfig(Section, prefix="task."):
    """Conversion of examples to rows, and of outputs to answers."""

    max_seq_length: Annotated[int, Interval(ge=8, le=1 << 16), TRAINING] = setting(
        128, """Maximum tokens of a row that the encoder reads. Longer texts are cut (see
        --long_texts), and longer contexts of questions are read in sliding windows. Default: 128;
        for extractive QA 512, or the encoder's maximum if it is smaller.""")
    swap_pairs: Annotated[bool, TRAINING] = setting(False, """Train on pairs of texts in both
        orders. Default: true for MRPC and STS-B, otherwise false.""")
    label_threshold: Annotated[Probability, TRAINING] = setting(
        0.5, """Probability from which a label is predicted (multi-label classification). 0 selects
        the threshold with the best micro F1 on dev.""")
    dropout: Probability = setting(0.1, "Dropout rate of the inputs of the output layer.")
    hidden_layer: bool = setting(False, """Add a dense GELU layer before the output layer
        (classification, multilabel, regression). With model.architecture=modernbert the layer has a
        layer norm, as in ModernBERT's heads, and tagging and extractive QA can have it, too.""")
    classifier_pooling: Literal["cls", "mean"] = setting("cls", """Vector of a text that
        classification, multilabel and regression read: cls is that of [CLS]. mean, the mean over
        all tokens, is for model.architecture=modernbert.""")
    long_texts: Annotated[LongTexts, TRAINING] = setting(
        LongTexts.TRUNCATE, """How to read texts longer than --max_seq_length (classification,
        multilabel, regression). truncate keeps the first tokens. head_tail keeps a quarter of the
        row from the start of the text and the rest from its end. windows reads the whole text in
        sliding windows and pools their outputs.""")
    window_pooling: Annotated[WindowPooling, TRAINING] = setting(
        WindowPooling.MEAN, """How --long_texts=windows pools the outputs of windows: mean of their
        probabilities (of their numbers for regression), max of their logits, or log_odds, the mean
        of their logits.""")
    max_windows: Annotated[int, Interval(gt=0, le=1 << 16), TRAINING] = setting(
        8, "Maximum windows per text in training, evenly spaced. Predictions read all windows.")
    doc_stride: Annotated[int, Interval(ge=0, le=1 << 16), TRAINING] = setting(
        0, """Tokens between the starts of two consecutive sliding windows. Default: 0, which is 128
        for extractive QA and half of --max_seq_length for --long_texts=windows.""")
    max_query_length: Length = setting(64, """Maximum tokens of a question; longer questions are
        cut.""")
    max_answer_length: Length = setting(30, "Maximum tokens of an answer.")
    beam_size: Few = setting(20, """Number of start positions of answers to search, and of end
        positions for each start.""")
    ends_given_starts: bool = setting(True, """Score the end of an answer given its start, as in
        XLNet; false: independently of it, as in BERT.""")
    answerability: bool = setting(True, "Also learn to predict if a question has an answer.")
    answerability_weight: Annotated[float, Interval(ge=0, le=1_000_000)] = setting(
        0.5, "Factor of the answerability loss.")
    answerable_by_window: bool = setting(True, """Train every window without the answer as
        unanswerable. false trains all windows of an answerable question as answerable, as Google's
        code does.""")
    tagging_loss_by_sentence: bool = setting(False, """Divide the loss of tags by the number of
        sentences instead of words, as Google's code does.""")
    class_weights: Annotated[str, TRAINING] = setting("", """Factor of each label's loss
        (classification, tagging). balanced gives n / (k n_c), as in scikit-learn: n training
        examples, k labels, n_c examples of the label. Otherwise give a number for each label:
        rare=5,common=1, or 5,1 in the order of the labels. Default: equal weights.""")
    label_smoothing: Annotated[Probability, TRAINING] = setting(
        0.0, """Fraction of the target that all labels share (classification, tagging), as in
        PyTorch.""")
    pooling: Annotated[PoolingMode, TRAINING] = setting("mean", """How the vectors of tokens are
        pooled to a vector of the text (sentence embeddings).""")
    temperature: Annotated[float, Interval(ge=0.001, le=1000), TRAINING] = setting(
        0.05, """Temperature of the contrastive loss of sentence embeddings: divisor of the
        cosines.""")
    no_answer_threshold: Annotated[float, Interval(le=1_000_000)] = setting(
        -2.75, """Score above which a question is unanswerable, if there is no dev set to choose it
        on.""")


class FinetuningOptimizerConfig(OptimizerConfig):
    """The optimizer of pre-training, with a learning rate per layer."""

    layerwise_decay: Annotated[float, Interval(gt=0, le=1), TRAINING] = setting(
        0.8, "Learning rate of each layer as a fraction of that of the layer above.")
    layerwise_decay_skips_one: bool = setting(False, """Apply the decay twice instead of once to the
        top layer, as Google's code does.""")

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.average_decay == 0.0, "optimizer.average_decay", "0 in fine-tuning",
                self.average_decay)

    def warmup(self, num_train_steps: int) -> float:
        """Returns the number of warm-up steps, by default a tenth of the run without rounding."""
        return self.warmup_steps if self.warmup_steps >= 0 else num_train_steps * 0.1


class FinetuningTrainingConfig(Section, prefix="training."):
    """Length of the run, batch, trials and precision."""

    num_train_epochs: Annotated[float, Interval(gt=0, le=1_000_000), TRAINING] = setting(
        3.0, """Passes over the training examples. Default: 3; 10 for RTE and STS-B, 2 for
        extractive QA, 1 for sentence embeddings.""")
    train_batch_size: Annotated[BatchSize, TRAINING] = setting(32, """Examples per step, summed over
        all devices. Default: 32; 64 for sentence embeddings.""")
    seed: Annotated[int, Interval(ge=0, le=LARGEST_COUNT // 2), TRAINING] = setting(
        1, """Seed of the head's weights, order and dropout. Trials after the first add 1, 2, ... to
        it.""")
    precision: Annotated[Precision, TRAINING] = setting(
        Precision.AUTO, """Number type of the encoder's activations and matmuls in training. auto
        selects bfloat16 on devices with bfloat16 instructions, otherwise float32. float16 adds loss
        scaling. Heads, and by default predictions, use float32.""")
    num_trials: Annotated[int, Interval(gt=0, le=10_000), TRAINING] = setting(
        1, """Number of runs with different seeds. The report has all scores, mean, median and
        spread.""")
    num_folds: Annotated[int, Interval(ge=0, le=1_000), TRAINING] = setting(
        0, """Folds of a stratified cross-validation on --train: one trial per fold, then the final
        model is trained on all examples. Default: 0, no cross-validation.""")
    keep_best: Annotated[bool, TRAINING] = setting(False, """Keep the weights of the epoch with the
        best score on dev instead of the last epoch.""")
    early_stopping: Annotated[int, Interval(ge=0, le=1_000_000), TRAINING] = setting(
        0, """Epochs without a better score on dev that end a trial, at its best epoch. Default: 0,
        never.""")
    freeze_layers: Annotated[int, Interval(ge=-1), TRAINING] = setting(
        0, """Lowest layers to freeze, with the embeddings; -1 freezes all layers. Default: 0,
        none.""")
    distillation_temperature: Annotated[float, Interval(gt=0, le=1000), TRAINING] = setting(
        2.0, """Divisor of the teacher's and the student's logits in the loss that compares
        them.""")
    distillation_weight: Annotated[float, Interval(gt=0, le=1), TRAINING] = setting(
        0.5, "Weight of the loss that compares with --teacher. The labels' loss has the rest.")


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
        require(self.initialization.word_vectors != COOCCURRENCE, "initialization.word_vectors",
                "the path of vectors, such as word_vectors.npy of a pre-training run",
                COOCCURRENCE)
        max_length, layers = self.model.max_position_embeddings, self.model.num_layers
        longer = ("" if self.model.positions == Positions.LEARNED else
                  f"; --set model.max_position_embeddings={self.task.max_seq_length} allows more")
        require(self.task.max_seq_length <= max_length, "task.max_seq_length",
                f"at most model.max_position_embeddings={max_length}, the longest row of the "
                f"encoder{longer}", self.task.max_seq_length)
        require(self.task.classifier_pooling == "cls" or self.model.is_modern,
                "task.classifier_pooling", f"cls for model.architecture={self.model.architecture}",
                self.task.classifier_pooling)
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
                raise UserError(f"{name} takes one value. Only settings of a trial take several, "
                                "such as --learning_rate=1e-4,3e-4; for several seeds give "
                                f"--num_trials. Received: {', '.join(map(str, values))}")

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
