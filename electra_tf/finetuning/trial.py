"""One trial: epochs of training, each followed by its scores, and what is kept of it."""

import math
from collections.abc import Mapping, Sequence

from electra_tf.config.finetuning import FinetuningTrainingConfig
from electra_tf.data.buckets import Row
from electra_tf.finetuning.finetuner import Finetuner
from electra_tf.finetuning.predictor import Predictor
from electra_tf.finetuning.results import Epoch, Scores, Trial, main_score, shown_score
from electra_tf.finetuning.setup import FinetuningRun
from electra_tf.modeling.electra import TaskModel
from electra_tf.reporting.pace import Pace
from electra_tf.reporting.progress import duration
from electra_tf.tasks.kinds.kind import Scored, Split


def run_trial(run: FinetuningRun, model: TaskModel, rows: Sequence[Row],
              dev: Mapping[str, Split], *, metric: str, seed: int) -> Trial:
    """Trains a model, scores it after every epoch, and leaves it with the weights to keep.

    Args:
        run: the settings.
        model: with its initial weights.
        rows: to train on.
        dev: split -> what to score; the first decides which epoch is best.
        metric: the main one.
        seed: of the order and dropout.

    Raises:
        UserError: the loss isn't finite.
    """
    training = run.config.training
    finetuner = Finetuner(run.trial, model, rows, seed=seed)
    predictor = Predictor(run.trial, model)
    pace = _TrialPace(finetuner.num_steps, training)
    epochs: list[Epoch] = []
    kept, kept_weights = 0, []
    losses: list[tuple[int, float]] = []
    for interval in finetuner.epochs():
        pace.trained(interval.step, interval.epoch)
        if not interval.passing:
            losses.append((interval.step, interval.loss))
        if not interval.ends_epoch:
            _say(pace, interval.epoch, interval.loss, "")
            continue
        loss = _mean_loss(losses, epochs[-1].step if epochs else 0)
        scores = {name: dict(scored(predictor, split, None).scores)
                  for name, split in dev.items()}
        pace.evaluated()
        epochs.append(Epoch(epoch=interval.epoch, step=interval.step, loss=loss, scores=scores))
        _say(pace, interval.epoch, loss, _shown(scores, run.spec.metrics))
        if not training.keep_best and not training.early_stopping:
            kept = len(epochs) - 1
            continue
        first = next(iter(scores))
        if len(epochs) == 1 or main_score(scores[first], metric) > main_score(
                epochs[kept].scores[first], metric):
            kept = len(epochs) - 1
            kept_weights = [variable.numpy() for variable in model.variables]
        elif training.early_stopping and len(epochs) - 1 - kept >= training.early_stopping:
            print(f"  stopped: no better {metric} for {training.early_stopping} epochs")
            break
    if kept_weights:
        for variable, value in zip(model.variables, kept_weights, strict=True):
            variable.assign(value)
    return Trial(seed=seed, losses=tuple(losses), epochs=tuple(epochs), kept_epoch=kept + 1,
                 seconds=pace.seconds, examples_per_second=pace.examples_per_second)


def _mean_loss(losses: Sequence[tuple[int, float]], after: int) -> float:
    """Returns the mean over all steps past `after`, of which the intervals' ends and means are."""
    inside = [(step, loss) for step, loss in losses if step > after]
    begins = [after, *(step for step, _ in inside)]
    return sum((step - begin) * loss for begin, (step, loss) in zip(begins, inside, strict=False)
               ) / (begins[-1] - after)


class _TrialPace:
    """How fast a trial goes; evaluation isn't training."""

    def __init__(self, num_steps: int, training: FinetuningTrainingConfig):
        self.num_steps, self._training = num_steps, training
        self.step = self._epoch = 0
        self._pace, self._seconds = Pace(), 0.0

    def trained(self, step: int, epoch: int) -> None:
        """Takes the time up to a step."""
        self._seconds += self._pace.steps(step - self.step)
        self.step, self._epoch = step, epoch

    def evaluated(self) -> None:
        """Leaves the time since the last step out."""
        self._pace.aside("evaluation")

    @property
    def seconds(self) -> float:
        return self._pace.elapsed

    @property
    def examples_per_second(self) -> float:
        return self.step * self._training.train_batch_size / max(self._seconds, 1e-9)

    @property
    def seconds_left(self) -> float:
        epochs = math.ceil(self._training.num_train_epochs) - self._epoch
        return self._pace.seconds_left(self.num_steps - self.step, {"evaluation": epochs})


def _say(pace: _TrialPace, epoch: int, loss: float, scores: str) -> None:
    total = f"{pace.num_steps:,}"
    print(f"  epoch {epoch:>2}  step {pace.step:>{len(total)},}/{total}  loss {loss:.4f}  "
          f"{pace.examples_per_second:>6,.0f} examples/s  elapsed {duration(pace.seconds)}  "
          f"ETA {duration(pace.seconds_left)}{scores}", flush=True)


def _shown(scores: Scores, metrics: Sequence[str]) -> str:
    return "".join(
        f"  {split}: " + ", ".join(f"{metric} {shown_score(metric, values[metric])}"
                                   for metric in metrics)
        for split, values in scores.items())


def scored(predictor: Predictor, split: Split, threshold: float | None) -> Scored:
    """Returns what a model says of a split; a threshold of None is searched, if there is one."""
    return split.score(predictor.predict(split.rows), threshold)
