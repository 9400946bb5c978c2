"""Defines the cases by name, from the program's own settings."""

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from benchmarks.pretraining import workload as plain
from benchmarks.pretraining.workload import Encoder, Setting, Workload
from electra_tf.config.model import EncoderConfig
from electra_tf.config.pretraining import Precision, PretrainingConfig, pretraining_config
from electra_tf.config.runtime import Xla
from electra_tf.platform.errors import UserError
from electra_tf.platform.machine import usable_cores


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """A model size and a batch."""

    model_size: str
    batch: int
    """B."""
    length: int
    """L."""
    model: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Fields of ModelConfig that differ from the size's."""
    recompute: bool = False

    def config(self, setting: Setting) -> PretrainingConfig:
        """Returns the settings of this project's run."""
        size, replace = pretraining_config(self.model_size), dataclasses.replace
        return replace(
            size, model=replace(size.model, **self.model),
            data=replace(size.data, max_seq_length=self.length),
            training=replace(size.training, train_batch_size=self.batch,
                             precision=Precision(setting.precision)),
            runtime=replace(size.runtime, xla=Xla(setting.compiler),
                            gradient_checkpointing=self.recompute),
            # As in the baselines: in the paper's warm-up, the first step has a learning rate of 0.
            optimizer=replace(size.optimizer, learning_rate=plain.LEARNING_RATE, warmup_steps=0))


CASES = {
    "small-128": Case(model_size="small", batch=32, length=128),
    "small-512": Case(model_size="small", batch=8, length=512),
    "base-128": Case(model_size="base", batch=8, length=128),
    # Tests the benchmark itself; too small to compare systems.
    "toy": Case(model_size="tiny", batch=2, length=16, model={
        "vocab_size": 1000, "embedding_size": 16, "hidden_size": 32, "intermediate_size": 64,
        "max_position_embeddings": plain.MAX_POSITIONS, "hidden_dropout": plain.DROPOUT,
        "attention_dropout": plain.DROPOUT}),
}
DEFAULT_CASES = ("small-128", "small-512", "base-128")
OTHER_CASES = "SIZE-BxL, such as base-8x512, or SIZE-BxL-recompute with gradient checkpointing"
_OTHER = re.compile(r"(tiny|small|base|large)-([1-9]\d*)x([1-9]\d*)(-recompute)?")


def case_of(name: str) -> Case:
    """Returns the case of a name; `UserError` if there is none."""
    if name in CASES:
        return CASES[name]
    match = _OTHER.fullmatch(name)
    if not match:
        raise UserError(f"no case is named {name!r}. There are {', '.join(CASES)}, and "
                        f"{OTHER_CASES}.")
    size, batch, length, recompute = match.groups()
    return Case(model_size=size, batch=int(batch), length=int(length), recompute=bool(recompute),
                model={"max_position_embeddings": max(plain.MAX_POSITIONS, int(length))})


def workload_of(name: str) -> Workload:
    """Returns the numbers of a case for every worker, on all cores."""
    case = case_of(name)
    config = case.config(Setting(precision="float32"))
    return Workload(
        case=name, batch=case.batch, length=case.length, threads=usable_cores(),
        predictions=config.masking.max_predictions(case.length),
        vocab_size=config.model.vocab_size,
        discriminator=encoder_sizes(config.model.discriminator),
        generator=encoder_sizes(config.model.generator))


def encoder_sizes(config: EncoderConfig) -> Encoder:
    """Returns an encoder's sizes in plain numbers."""
    return Encoder(**{field.name: getattr(config, field.name)
                      for field in dataclasses.fields(Encoder)})
