"""Precision, devices, speed and reports of both programs."""

import enum
from typing import Annotated, Literal

from annotated_types import Interval

from electra_tf.core.settings import Count, Flag, PositiveCount, Section, require, setting

BatchSize = Annotated[int, Interval(gt=0, le=1 << 20)]
"""Examples of a step; the bound is 500 times ELECTRA-Large's batch."""
HARDWARE, LOOP = Flag("Hardware"), Flag("Hardware", ("pretraining",))
REPORTS = Flag("Checkpoints and reports")
CHECKPOINTS = Flag("Checkpoints and reports", ("pretraining",))
# Values are the names in lower case.
Precision = enum.StrEnum("Precision", "AUTO FLOAT32 BFLOAT16 FLOAT16")
Strategy = enum.StrEnum("Strategy", "AUTO ONE_DEVICE MIRRORED MULTI_WORKER_MIRRORED TPU")
Xla = enum.StrEnum("Xla", "AUTO ON OFF")


class RuntimeConfig(Section, prefix="runtime."):
    """Devices, speed, reports and checkpoints.

    They change a run's result by rounding only: by another device or order of additions.
    """

    distribution_strategy: Annotated[Strategy, HARDWARE] = setting(
        Strategy.AUTO, """How the batch is distributed over devices. auto selects tpu if --tpu is
        given, multi_worker_mirrored if TF_CONFIG names a cluster, mirrored on a machine with
        several GPUs, otherwise one_device.""")
    tpu: Annotated[str, HARDWARE] = setting("", """Name or grpc:// address of the TPU; local on a
        TPU VM. Default: no TPU.""")
    num_gpus: Annotated[int, Interval(ge=-1, le=1000), HARDWARE] = setting(
        -1, "Number of GPUs to use. Default: -1, all GPUs of this machine.")
    num_replicas: Annotated[int, Interval(ge=0, le=64), HARDWARE] = setting(
        0, """Replicas to split the CPU into, to test a run on several devices. Default: 0, no
        split.""")
    steps_per_loop: Annotated[Count, LOOP] = setting(0, """Maximum training steps of one call of the
        compiled loop. SIGTERM and Ctrl-C take effect after the call. Default: 0, which is 20 on a
        TPU, otherwise 1.""")
    gradient_accumulation_steps: Annotated[BatchSize, HARDWARE] = setting(
        1, "Micro-batches that a step computes one after the other, to save memory.")
    gradient_checkpointing: Annotated[bool, HARDWARE] = setting(
        False, """Recompute activations for the gradient: saves memory, and takes a third more
        time.""")
    cpu_parts: Annotated[int, Interval(ge=0, le=1000)] = setting(
        0, """Parts of a micro-batch that a CPU computes in parallel. Default: 0, one per core, up
        to 4.""")
    xla: Annotated[Xla, HARDWARE] = setting(Xla.AUTO, """Compile the step with XLA. auto compiles on
        GPUs and TPUs: XLA has no bfloat16 on CPUs.""")
    deterministic: Annotated[bool, HARDWARE] = setting(False, """Make two runs of the same command
        end with bit-identical weights. Training is about 5 % slower, and `runtime.cpu_parts` is
        1.""")
    save_checkpoints_steps: Annotated[PositiveCount, CHECKPOINTS] = setting(
        1000, "Steps between checkpoints.")
    keep_checkpoint_max: Annotated[Count, CHECKPOINTS] = setting(
        3, "Number of newest checkpoints to keep. 0 keeps all.")
    log_every_steps: Annotated[Count, REPORTS] = setting(0, """Steps between progress lines and
        metrics. Default: 0, which is 100, or a twentieth of a run of fewer than 2,000 steps.""")
    log_every_seconds: Annotated[float, Interval(ge=0), REPORTS] = setting(
        30.0, """Seconds without a progress line after which to log as well. 0 logs by steps
        only.""")
    report_to: Annotated[tuple[Literal["wandb", "mlflow"], ...], REPORTS] = setting(
        (), """Trackers to send settings and metrics to: wandb, mlflow or wandb,mlflow. Default:
        none.""")
    sample_every_steps: Annotated[Count, CHECKPOINTS] = setting(
        1000, "Steps between sample corruptions written for TensorBoard. 0 writes none.")
    eval_every_steps: Annotated[Count, CHECKPOINTS] = setting(0, """Steps between evaluations on the
        held-out shards. Default: 0, at the end only.""")
    eval_batch_size: Annotated[BatchSize, REPORTS] = setting(32, """Examples per batch of an
        evaluation, rounded up to a multiple of the number of replicas.""")
    eval_steps: Annotated[Count, CHECKPOINTS] = setting(100, """Number of batches per evaluation. 0
        evaluates on all held-out examples.""")
    grace_seconds: Annotated[float, Interval(gt=0), CHECKPOINTS] = setting(
        30.0, """Seconds for several workers to agree on a last step and save it after SIGTERM or
        Ctrl-C.""")
    verify_checksums: bool = setting(True, """Read every shard at the start and compare its checksum
        with the manifest.""")

    def __post_init__(self):
        super().__post_init__()
        # Settings of devices that exclude each other.
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
