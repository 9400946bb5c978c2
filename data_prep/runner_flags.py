"""The flags that say what does the work: processes of this machine, or a runner of Apache Beam."""

import logging
import shlex

from absl import flags

from data_prep import local_runner
from data_prep.work_units import Runner
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path

LOCAL = "local"
BEAM = ("DirectRunner", "PrismRunner", "FlinkRunner", "SparkRunner", "PortableRunner",
        "DataflowRunner")
NAMES = ("runner", "num_workers", "beam_options")
"""Of the flags."""

flags.DEFINE_enum("runner", LOCAL, (LOCAL, *BEAM),
                  "local: processes of this machine. The others are Apache Beam's "
                  "(docs/data_at_scale.md). The result is the same.", case_sensitive=True)
flags.DEFINE_integer("num_workers", None, "For --runner=local: processes, as many as there are "
                     "CPUs if not given; the result is the same.")
flags.DEFINE_string("beam_options", "", "For the other runners: Beam's own options, as on a "
                    "command line, for example '--job_endpoint=flink:8099 "
                    "--environment_type=DOCKER'.")


def runner(scratch: Path) -> Runner:
    """Returns what does the work.

    Args:
        scratch: a path for files of its own, that all workers can write below.

    Raises:
        UserError: a flag doesn't fit the runner, or Beam refuses an option.
    """
    values = flags.FLAGS
    if values.runner == LOCAL:
        if values.beam_options:
            raise UserError(f"--beam_options belongs to Beam's runners: {', '.join(BEAM)}; "
                            "give one as --runner.")
        return local_runner.LocalRunner(local_runner.worker_count(values.num_workers))
    if values.num_workers is not None:
        raise UserError(f"--num_workers belongs to --runner={LOCAL}; for Beam's runners write "
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
