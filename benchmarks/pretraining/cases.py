"""Defines the cases by name, from the program's own settings."""

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from benchmarks.pretraining import workload
from benchmarks.pretraining.workload import EncoderSizes, StepOptions, Workload
from electra_tf.config.model import EncoderConfig
from electra_tf.config.pretraining import Precision, PretrainingConfig, pretraining_config
from electra_tf.config.runtime import Xla
from electra_tf.platform.errors import UserError
from electra_tf.platform.machine import usable_cores


@dataclasses.dataclass(frozen=True, kw_only=True)
class StepCase:
    """A model size and a batch."""

    model_size: str
    batch: int
    """B."""
    length: int
    """L."""
    model: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Fields of ModelConfig that differ from the size's."""
    recompute: bool = False

    def config(self, options: StepOptions) -> PretrainingConfig:
        """Returns the settings of this project's run."""
        size, replace = pretraining_config(self.model_size), dataclasses.replace
        return replace(
            size, model=replace(size.model, **self.model),
            data=replace(size.data, max_seq_length=self.length),
            training=replace(size.training, train_batch_size=self.batch,
                             precision=Precision(options.precision)),
            runtime=replace(size.runtime, xla=Xla(options.compiler),
                            gradient_checkpointing=self.recompute),
            # As in the baselines: in the paper's warm-up, the first step has a learning rate of 0.
            optimizer=replace(size.optimizer, learning_rate=workload.LEARNING_RATE, warmup_steps=0))


CASES = {
    "small-128": StepCase(model_size="small", batch=32, length=128),
    "small-512": StepCase(model_size="small", batch=8, length=512),
    "base-128": StepCase(model_size="base", batch=8, length=128),
    # Tests the benchmark itself; too small to compare systems.
    "toy": StepCase(model_size="tiny", batch=2, length=16, model={
        "vocab_size": 1000, "embedding_size": 16, "hidden_size": 32, "intermediate_size": 64,
        "max_position_embeddings": workload.MAX_POSITIONS, "hidden_dropout": workload.DROPOUT,
        "attention_dropout": workload.DROPOUT}),
}
DEFAULT_CASES = ("small-128", "small-512", "base-128")
OTHER_CASES = "SIZE-BxL, such as base-8x512, or SIZE-BxL-recompute with gradient checkpointing"


def case_of(name: str) -> StepCase:
    """Returns the case of a name; `UserError` if there is none."""
    if name in CASES:
        return CASES[name]
    match = re.fullmatch(r"(tiny|small|base|large)-([1-9]\d*)x([1-9]\d*)(-recompute)?", name)
    if not match:
        raise UserError(f"no case is named {name!r}. There are {', '.join(CASES)}, and "
                        f"{OTHER_CASES}.")
    size, batch, length, recompute = match.groups()
    return StepCase(
        model_size=size, batch=int(batch), length=int(length), recompute=bool(recompute),
        model={"max_position_embeddings": max(workload.MAX_POSITIONS, int(length))})


def workload_of(name: str) -> Workload:
    """Returns the numbers of a case for every worker, on all cores."""
    case = case_of(name)
    config = case.config(StepOptions(precision="float32"))
    return Workload(
        case=name, batch=case.batch, length=case.length, threads=usable_cores(),
        predictions=config.masking.max_predictions(case.length),
        vocab_size=config.model.vocab_size,
        discriminator=encoder_sizes(config.model.discriminator),
        generator=encoder_sizes(config.model.generator))


def encoder_sizes(config: EncoderConfig) -> EncoderSizes:
    """Returns an encoder's sizes in plain numbers."""
    return EncoderSizes(**{field.name: getattr(config, field.name)
                           for field in dataclasses.fields(EncoderSizes)})
