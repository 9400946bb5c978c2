"""The cases by name, from the program's own settings."""

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from benchmarks.pretraining import workload as plain
from benchmarks.pretraining.workload import Encoder, Setting, Workload
from electra_tf.config.model import EncoderConfig
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig, pretraining_config
from electra_tf.platform.errors import UserError


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """A model size and a batch."""

    model_size: str
    batch: int
    """B."""
    length: int
    """L."""
    changes: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def config(self, setting: Setting) -> PretrainingConfig:
        """Returns the settings of a run of ours."""
        return override(pretraining_config(self.model_size), {
            "training.train_batch_size": self.batch,
            "training.precision": setting.precision,
            "runtime.xla": setting.compiler,
            # As the peers: the paper's warm-up would leave the first steps without an update.
            "optimizer.learning_rate": plain.LEARNING_RATE,
            "optimizer.warmup_steps": 0,
            **self.changes})


CASES = {
    "small-128": Case(model_size="small", batch=32, length=128),
    "small-512": Case(model_size="small", batch=8, length=512),
    "base-128": Case(model_size="base", batch=8, length=128),
    # Measures nothing: to try the benchmark itself.
    "toy": Case(model_size="tiny", batch=2, length=16, changes={
        "model.vocab_size": 1000, "model.embedding_size": 16, "model.hidden_size": 32,
        "model.intermediate_size": 64, "model.max_position_embeddings": plain.MAX_POSITIONS,
        "model.hidden_dropout": plain.DROPOUT, "model.attention_dropout": plain.DROPOUT}),
}
DEFAULT_CASES = ("small-128", "small-512", "base-128")
OTHER_CASES = "SIZE-BxL, such as base-8x512, or SIZE-BxL-recompute with gradient checkpointing"
_OTHER = re.compile(r"(tiny|small|base|large)-([1-9]\d*)x([1-9]\d*)(-recompute)?")


def case_of(name: str) -> Case:
    """Returns the case of a name.

    Raises:
        UserError: there is none.
    """
    if name in CASES:
        return CASES[name]
    match = _OTHER.fullmatch(name)
    if not match:
        raise UserError(f"no case is named {name!r}. There are {', '.join(CASES)}, and "
                        f"{OTHER_CASES}.")
    size, batch, length, recompute = match.groups()
    return Case(model_size=size, batch=int(batch), length=int(length), changes={
        "runtime.gradient_checkpointing": bool(recompute),
        "model.max_position_embeddings": max(plain.MAX_POSITIONS, int(length))})


def workload_of(name: str, threads: int) -> Workload:
    """Returns the numbers of a case for every worker."""
    case = case_of(name)
    config = case.config(Setting(precision="float32"))
    return Workload(
        case=name, batch=case.batch, length=case.length, threads=threads,
        predictions=config.masking.max_predictions(case.length),
        vocab_size=config.model.vocab_size,
        discriminator=encoder_sizes(config.model.discriminator),
        generator=encoder_sizes(config.model.generator))


def encoder_sizes(config: EncoderConfig) -> Encoder:
    """Returns an encoder's sizes in plain numbers."""
    return Encoder(**{field.name: getattr(config, field.name)
                      for field in dataclasses.fields(Encoder)})
