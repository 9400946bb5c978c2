"""What a sweep consists of: runs of the two programs, and how long each is."""

import dataclasses
import hashlib
import json
from pathlib import Path

import numpy as np

from electra_tf.config.overrides import flatten, override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.data.manifest import Manifest
from electra_tf.modeling.masking import SpecialTokens, TokenKinds
from electra_tf.objectives.objective import Given
from electra_tf.objectives.registry import build_objective
from experiments.budgets import Budget
from experiments.sweep import Sweep, Variant

EVALUATIONS = 8
"""Points of a run's held-out curves."""
_EVALUATED_BATCHES = 16


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job:
    """A pre-training run, and the tasks that judge it."""

    variant: Variant
    seed: int
    config: PretrainingConfig
    """With the records' vocabulary and length, and the number of steps."""
    flops: float
    """FLOPs of all steps, in matrix multiplications."""
    records: str
    """Fingerprint of its records."""
    home: Path
    """Directory of all runs."""

    @property
    def steps(self) -> int:
        """Returns the steps of the run."""
        return self.config.training.num_train_steps

    @property
    def tokens(self) -> int:
        """Returns the tokens of all steps, with padding."""
        return self.steps * self.config.training.train_batch_size * self.config.data.max_seq_length

    @property
    def settings(self) -> str:
        """Returns what decides the result, as JSON: non-default settings and the records."""
        defaults = flatten(override(PretrainingConfig(), {
            "objective.name": self.config.objective.name}))
        own = {name: value for name, value in flatten(self.config).items()
               if not name.startswith("runtime.") and value != defaults[name]}
        own |= {"objective.name": self.config.objective.name, "records": self.records}
        return json.dumps(own, sort_keys=True)

    @property
    def directory(self) -> Path:
        """Returns the directory of its files, shared by sweeps with the same run."""
        digest = hashlib.sha256(self.settings.encode()).hexdigest()[:16]
        return self.home / f"{self.config.objective.name}-seed{self.seed}-{digest}"

    def pretraining_flags(self, data_dir: Path, budget: Budget) -> list[str]:
        """Returns the flags of run_pretraining.py."""
        every = -(-self.steps // EVALUATIONS)
        settings = budget.settings | dict(self.variant.settings) | {
            "training.seed": self.seed, "training.num_train_steps": self.steps,
            "runtime.eval_every_steps": every, "runtime.eval_steps": _EVALUATED_BATCHES,
            "runtime.sample_every_steps": 0, "runtime.save_checkpoints_steps": every}
        # The name of an objective decides which of its settings there are.
        return [f"--data_dir={data_dir}", f"--model_dir={self.directory / 'pretrained'}",
                f"--model_size={budget.model_size}",
                f"--recipe={self.variant.recipe or budget.recipe}",
                *(f"--set={name}={value}" for name, value in settings.items())]


def plan(sweep: Sweep, budget: Budget, manifest: Manifest, home: Path,
         seeds: int) -> list[Job]:
    """Returns the runs of a sweep, all variants of a seed before those of the next.

    Raises:
        UserError: settings that contradict each other or the records.
    """
    facts = {"model.vocab_size": manifest.vocabulary.size,
             "data.max_seq_length": manifest.max_seq_length}
    reference = override(
        Variant(name="", settings={}).config(budget),
        facts | {"training.num_train_steps": budget.reference_steps})
    whole = flops_of_a_step(reference) * budget.reference_steps

    def job(variant: Variant, seed: int) -> Job:
        config = override(variant.config(budget), facts)
        step = flops_of_a_step(config)
        steps = max(1, round(whole * variant.share / step))
        return Job(
            variant=variant, seed=seed, flops=steps * step, records=manifest.fingerprint, home=home,
            config=override(config, {"training.num_train_steps": steps, "training.seed": seed}))

    return [job(variant, seed) for seed in range(1, seeds + 1) for variant in sweep.variants]


def flops_of_a_step(config: PretrainingConfig) -> float:
    """Returns the matrix products of a training step, forward and backward."""
    length, size = config.data.max_seq_length, config.model.vocab_size
    kinds = TokenKinds(SpecialTokens(pad=0, cls=1, sep=2, mask=3), size, np.zeros(size, bool))
    objective = build_objective(
        config, Given(kinds=kinds, token_counts=lambda: np.ones(size, np.int64)))
    return objective.flops_per_token(length) * length * config.training.train_batch_size
