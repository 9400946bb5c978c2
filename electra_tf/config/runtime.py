"""Settings that change how fast, where and how visibly a run goes, never its result.

(Beyond the rounding that another device or another order of additions brings.)
"""

import dataclasses
import enum

from electra_tf.config.checks import LARGEST_COUNT, require, require_at_most, require_positive


class Strategy(enum.StrEnum):
    """How a run is spread over devices (`tf.distribute`)."""

    AUTO = "auto"
    """TPU if `--tpu` is given; all GPUs of a machine with several; else one device."""
    ONE_DEVICE = "one_device"
    MIRRORED = "mirrored"
    MULTI_WORKER_MIRRORED = "multi_worker_mirrored"
    TPU = "tpu"


class Xla(enum.StrEnum):
    """Whether the train step is compiled by XLA."""

    AUTO = "auto"
    """On for GPU and TPU; off on the CPU, where XLA computes bfloat16 in float32."""
    ON = "on"
    OFF = "off"


MOST_LOG_STEPS = 100
CURVE_POINTS = 20
"""Reports that a run has at least, unless its steps are fewer or `log_every_steps` is set."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class RuntimeConfig:
    """Where and how a run executes."""

    distribution_strategy: Strategy = Strategy.AUTO
    """How the batch is spread over devices."""
    tpu: str = ""
    """TPU name or grpc:// address; "local" on a TPU VM."""
    num_gpus: int = -1
    """GPUs to use; -1 for all that the machine has."""
    num_replicas: int = 0
    """Split the CPU into so many devices, each a replica with its share of the batch, to try out
    what several devices do; 0: one. Other devices stay unused."""
    steps_per_loop: int = 0
    """Steps that the devices run, at most, before the program looks after them: for reports,
    checkpoints and evaluations they stop in time, SIGTERM and Ctrl-C wait for them. 0: 20 on a TPU,
    else 1."""
    gradient_accumulation_steps: int = 1
    """Micro-batches that one step splits its batch into, one after the other."""
    gradient_checkpointing: bool = False
    """Keep only the inputs of layers for the gradient and compute the rest again: a fraction of
    the memory for activations, a third more time."""
    cpu_parts: int = 0
    """At most so many parts of a micro-batch are computed side by side, where the device is a CPU;
    0: one per core, up to 4."""
    xla: Xla = Xla.AUTO
    """Whether XLA compiles the step; auto: on a GPU."""
    deterministic: bool = False
    """Deterministic kernels: two runs give bit-identical weights (about 5 % slower, and without
    `cpu_parts`)."""
    save_checkpoints_steps: int = 1000
    """Steps between checkpoints."""
    keep_checkpoint_max: int = 3
    """Newest checkpoints kept; 0 keeps all."""
    log_every_steps: int = 0
    """Steps between progress lines and entries of metrics.jsonl; 0 takes 100, or a twentieth of a
    run that is shorter than 2,000 steps."""
    log_every_seconds: float = 30.0
    """A line of progress comes after so many seconds without one, too; 0: only by steps."""
    sample_every_steps: int = 1000
    """Steps between sample corruptions written for TensorBoard; 0 for none."""
    eval_every_steps: int = 0
    """Steps between evaluations on the held-out shards; 0 evaluates at the end only."""
    eval_batch_size: int = 32
    """Rounded up to a multiple of the number of replicas."""
    eval_steps: int = 100
    """Batches per evaluation; 0 for all that were held out."""
    grace_seconds: float = 30.0
    """With several workers: they end so long after SIGTERM or Ctrl-C, if by then they haven't
    agreed on a step and saved it."""
    verify_checksums: bool = True
    """Read every shard once at the start and compare it with the manifest."""

    def __post_init__(self):
        require_positive("runtime", self, "gradient_accumulation_steps", "save_checkpoints_steps",
                         "eval_batch_size", "grace_seconds")
        for name in ("cpu_parts", "keep_checkpoint_max", "log_every_steps", "sample_every_steps",
                     "eval_every_steps", "eval_steps", "log_every_seconds", "num_replicas",
                     "steps_per_loop"):
            value = getattr(self, name)
            require(value >= 0, f"runtime.{name}", "0 or more", value)
        require_at_most("runtime", self, LARGEST_COUNT, "save_checkpoints_steps", "log_every_steps",
                        "sample_every_steps", "eval_every_steps", "eval_steps",
                        "keep_checkpoint_max", "steps_per_loop")
        require_at_most("runtime", self, 1 << 20, "gradient_accumulation_steps", "eval_batch_size")
        require_at_most("runtime", self, 1000, "cpu_parts", "num_gpus")
        require_at_most("runtime", self, 64, "num_replicas")
        require(self.num_gpus >= -1, "runtime.num_gpus", "-1 (all) or more", self.num_gpus)
        others = [name for name in ("tpu", "num_gpus") if getattr(self, name) not in ("", -1, 0)]
        if self.distribution_strategy not in (Strategy.AUTO, Strategy.MIRRORED):
            others.append("distribution_strategy")
        require(not (self.num_replicas and others), "runtime.num_replicas",
                f"0 when {' and '.join(others)} is given: it splits the CPU", self.num_replicas)
        require(not (self.tpu and self.distribution_strategy not in (Strategy.AUTO, Strategy.TPU)),
                "runtime.distribution_strategy", f"auto or tpu when tpu={self.tpu!r} is given",
                str(self.distribution_strategy))

    def log_interval(self, num_train_steps: int) -> int:
        """Returns the steps between reports of a run: a short one is to have a curve too."""
        if self.log_every_steps:
            return self.log_every_steps
        return min(MOST_LOG_STEPS, max(1, num_train_steps // CURVE_POINTS))
