"""The flags that select what does the work: local processes, or a runner of Apache Beam."""

import dataclasses
import logging
import shlex
from typing import Annotated, Literal

from annotated_types import Interval

from data_prep import local_runner
from data_prep.work_units import Runner
from electra_tf.platform.errors import UserError
from electra_tf.platform.machine import usable_cores
from electra_tf.platform.section_flags import define_flags, from_flags
from electra_tf.platform.settings import Section, settings_of
from electra_tf.platform.storage import Path


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunnerSettings(Section, prefix="--"):
    """Settings of speed; the result is always the same."""

    runner: Literal["local", "DirectRunner", "PrismRunner", "FlinkRunner", "SparkRunner",
                    "PortableRunner", "DataflowRunner"] = "local"
    """local: processes of this machine. The others are Apache Beam's
    (docs/how_to/data_cluster.md). The result is the same."""
    num_workers: Annotated[int | None, Interval(ge=1, le=local_runner.MOST_WORKERS)] = None
    """For --runner=local: number of processes; as many as there are CPUs if not given."""
    beam_options: str = ""
    """For the other runners: Beam's own options, as on a command line, for example
    '--job_endpoint=flink:8099 --environment_type=DOCKER'."""


define_flags(RunnerSettings)
NAMES = tuple(settings_of(RunnerSettings))


def runner(scratch: Path) -> Runner:
    """Returns what does the work.

    Args:
        scratch: a path for files of its own, that all workers can write below.

    Raises:
        UserError: a flag doesn't fit the runner, or Beam refuses an option.
    """
    values = from_flags(RunnerSettings)
    if values.runner == "local":
        if values.beam_options:
            raise UserError("--beam_options belongs to Beam's runners; give one as --runner, for "
                            "example --runner=DirectRunner.")
        return local_runner.LocalRunner(values.num_workers or usable_cores())
    if values.num_workers is not None:
        raise UserError("--num_workers belongs to --runner=local; for Beam's runners write "
                        "it within --beam_options.")
    try:
        arguments = tuple(shlex.split(values.beam_options))
    except ValueError as error:
        raise UserError(f"--beam_options can't be read: {error}.") from error
    logging.disable(logging.WARNING)  # Beam warns of the parts of Google's cloud that it lacks.
    try:
        # Here, because it takes two seconds that other runners needn't wait.
        from data_prep import beam_runner
    finally:
        logging.disable(logging.NOTSET)
    return beam_runner.BeamRunner(values.runner, arguments, scratch)
