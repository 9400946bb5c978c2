"""Defines the flags that both commands share: the text, its sources' options, and the runner."""

import logging
import shlex
from typing import Annotated, Literal

from absl import flags
from annotated_types import Interval

from data_prep import local_runner
from data_prep.sources.registry import open_source
from data_prep.sources.source import Source, SourceOptions
from data_prep.work_units import Runner
from electra_tf.core.errors import UserError
from electra_tf.core.machine import usable_cores
from electra_tf.core.setting_flags import define_flags, from_flags
from electra_tf.core.settings import Section, setting, settings_of
from electra_tf.core.storage import Path
from electra_tf.text.normalization import AUTO


class RunnerSettings(Section, prefix="--"):
    """Settings that change only the speed."""

    runner: Literal["local", "DirectRunner", "PrismRunner", "FlinkRunner", "SparkRunner",
                    "PortableRunner", "DataflowRunner"] = setting(
        "local", """Runner of the pipeline: local for processes of this machine, or one of Apache
        Beam (docs/how_to/data_cluster.md). All write the same files.""")
    num_workers: Annotated[int | None, Interval(ge=1, le=1000)] = setting(
        None, """Processes of --runner=local; each takes 0.8 GB. Default: the number of CPU
        cores.""")
    beam_options: str = setting("", """Options of the Beam runner, written as on a command line:
        '--job_endpoint=flink:8099 --environment_type=DOCKER'.""")


flags.DEFINE_string("input", "", (
    "The text: patterns of UTF-8 text files, separated by commas; .gz, .bz2, .xz and .zst are "
    "decompressed. Blank lines separate documents. Other sources begin with a name: "
    "wikipedia:PATTERN, books:PATTERN, jsonl:PATTERN#FIELD, parquet:PATTERN#COLUMN, "
    "hf:OWNER/DATASET:CONFIG:SPLIT#COLUMN (Hugging Face Hub), tfds:NAME#FEATURE, "
    "embedded:docstrings, embedded:python (text of installed packages). See docs/how_to/data.md."))
flags.DEFINE_string("normalization", AUTO, (
    "Normalization of the text: bert_uncased (lower case, no accents), bert_cased, lower_case "
    "(keeps accents), nfc (keeps all letters) or auto. For a new vocabulary, auto chooses by the "
    "scripts of the text. For records, it is the normalization of --vocab_file. See "
    "docs/how_to/languages.md."))
for section in (SourceOptions, RunnerSettings):
    define_flags(section)
INPUT = ("input", *settings_of(SourceOptions))
SPEED = tuple(settings_of(RunnerSettings))


def source() -> Source:
    """Returns the text that the command line names; `UserError` for one that cannot be read."""
    return open_source(flags.FLAGS.input, from_flags(SourceOptions))


def runner(scratch: Path) -> Runner:
    """Returns the runner that the command line names; `UserError` for contradictory flags.

    `scratch` is a directory for this runner alone, to which all workers can write.
    """
    values = from_flags(RunnerSettings)
    # Processes of this machine.
    if values.runner == "local":
        if values.beam_options:
            raise UserError("--beam_options belongs to Beam's runners; give one as --runner, for "
                            "example --runner=DirectRunner.")
        return local_runner.LocalRunner(values.num_workers or usable_cores())
    if values.num_workers is not None:
        raise UserError("--num_workers belongs to --runner=local; give a Beam runner's number of "
                        "workers in --beam_options.")
    try:
        # A cluster, whose options are written as on a command line.
        arguments = tuple(shlex.split(values.beam_options))
    except ValueError as error:
        raise UserError(f"--beam_options can't be read: {error}.") from error
    logging.disable(logging.WARNING)  # Beam warns of missing cloud packages.
    try:
        from data_prep import beam_runner  # Its import takes two seconds.
    finally:
        logging.disable(logging.NOTSET)
    return beam_runner.BeamRunner(values.runner, arguments, scratch)
