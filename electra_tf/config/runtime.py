"""Precision, devices, speed and reports of both programs."""

import dataclasses
import enum
from typing import Annotated, Literal

from annotated_types import Interval

from electra_tf.platform.settings import Count, Flag, PositiveCount, Section, require

BatchSize = Annotated[int, Interval(gt=0, le=1 << 20)]
"""Examples of a step; the bound is 500 times ELECTRA-Large's batch."""
HARDWARE, LOOP = Flag("Hardware"), Flag("Hardware", ("pretraining",))
REPORTS = Flag("Checkpoints and reports")
CHECKPOINTS = Flag("Checkpoints and reports", ("pretraining",))
# Values are the names in lower case.
Precision = enum.StrEnum("Precision", "AUTO FLOAT32 BFLOAT16 FLOAT16")
Strategy = enum.StrEnum("Strategy", "AUTO ONE_DEVICE MIRRORED MULTI_WORKER_MIRRORED TPU")
Xla = enum.StrEnum("Xla", "AUTO ON OFF")


@dataclasses.dataclass(frozen=True, kw_only=True)
class RuntimeConfig(Section, prefix="runtime."):
    """Devices, speed, reports and checkpoints.

    They change a run's result by rounding only: by another device or order of additions.
    """

    distribution_strategy: Annotated[Strategy, HARDWARE] = Strategy.AUTO
    """How the batch is distributed over devices; auto: TPU if --tpu is given, several machines if
    TF_CONFIG names a cluster, all GPUs of a machine with several, otherwise one device."""
    tpu: Annotated[str, HARDWARE] = ""
    """TPU name or grpc:// address; "local" on a TPU VM."""
    num_gpus: Annotated[int, Interval(ge=-1, le=1000), HARDWARE] = -1
    """GPUs to use; -1 for all of the machine."""
    num_replicas: Annotated[int, Interval(ge=0, le=64), HARDWARE] = 0
    """Replicas into which the CPU is split, to test a run on several devices; 0 for one."""
    steps_per_loop: Annotated[Count, LOOP] = 0
    """Largest number of steps that the devices run before control returns to the program; SIGTERM
    and Ctrl-C wait for them. 0: 20 on a TPU, otherwise 1."""
    gradient_accumulation_steps: Annotated[BatchSize, HARDWARE] = 1
    """Micro-batches that one step splits its batch into, one after the other."""
    gradient_checkpointing: Annotated[bool, HARDWARE] = False
    """Keep only the inputs of layers for the gradient: less memory, a third more time."""
    cpu_parts: Annotated[int, Interval(ge=0, le=1000)] = 0
    """Most parts of a micro-batch that a CPU computes in parallel; 0: one per core, up to 4."""
    xla: Annotated[Xla, HARDWARE] = Xla.AUTO
    """Compile the step with XLA; auto: on GPUs and TPUs, because XLA:CPU has no bfloat16."""
    deterministic: Annotated[bool, HARDWARE] = False
    """Bit-identical weights of two runs (about 5 % slower, and without `cpu_parts`)."""
    save_checkpoints_steps: Annotated[PositiveCount, CHECKPOINTS] = 1000
    """Steps between checkpoints."""
    keep_checkpoint_max: Annotated[Count, CHECKPOINTS] = 3
    """Newest checkpoints kept; 0 keeps all."""
    log_every_steps: Annotated[Count, REPORTS] = 0
    """Steps between progress lines and metrics; 0: 100, or a twentieth of a run of under 2,000."""
    log_every_seconds: Annotated[float, Interval(ge=0), REPORTS] = 30.0
    """Also log after this many seconds without a progress line; 0 logs by steps only."""
    report_to: Annotated[tuple[Literal["wandb", "mlflow"], ...], REPORTS] = ()
    """Experiment trackers that also receive settings and metrics, with commas."""
    sample_every_steps: Annotated[Count, CHECKPOINTS] = 1000
    """Steps between sample corruptions written for TensorBoard; 0 for none."""
    eval_every_steps: Annotated[Count, CHECKPOINTS] = 0
    """Steps between evaluations on the held-out shards; 0 evaluates at the end only."""
    eval_batch_size: Annotated[BatchSize, REPORTS] = 32
    """Examples per batch of an evaluation, rounded up to a multiple of the number of replicas."""
    eval_steps: Annotated[Count, CHECKPOINTS] = 100
    """Batches per evaluation; 0 for all that were held out."""
    grace_seconds: Annotated[float, Interval(gt=0), CHECKPOINTS] = 30.0
    """Seconds that several workers have after SIGTERM or Ctrl-C to agree on a step and save it."""
    verify_checksums: bool = True
    """Read every shard once at the start and compare it with the manifest."""

    def __post_init__(self):
        super().__post_init__()
        devices = [name for name in ("tpu", "num_gpus") if getattr(self, name) not in ("", -1, 0)]
        if self.distribution_strategy not in (Strategy.AUTO, Strategy.MIRRORED):
            devices.append("distribution_strategy")
        require(not (self.num_replicas and devices), "runtime.num_replicas",
                f"0 when {' and '.join(devices)} is given: it splits the CPU", self.num_replicas)
        require(not (self.tpu and self.distribution_strategy not in (Strategy.AUTO, Strategy.TPU)),
                "runtime.distribution_strategy", f"auto or tpu when tpu={self.tpu!r} is given",
                str(self.distribution_strategy))

    def log_interval(self, num_train_steps: int) -> int:
        """Returns the number of steps between reports, smaller for a short run."""
        return self.log_every_steps or min(100, max(1, num_train_steps // 20))
