r"""Shows what a directory of records contains.

    python -m electra_tf.apps.inspection.inspect_records records
    python -m electra_tf.apps.inspection.inspect_records records --html=records.html \
        --set masking.rate=0.25

Prints the manifest, copies of examples, their lengths, words and [UNK] by script, frequent and rare
pieces, and some examples with the masks that training would draw for them. --html also writes a
page with colors. The command reads all examples. docs/how_to/data.md describes the output.
"""

import functools
import pathlib

from absl import flags

from electra_tf.config import overrides
from electra_tf.config.overrides import ANY_SETTING
from electra_tf.config.pretraining import SIZES, resolve
from electra_tf.platform import atomic_file, command_line, storage
from electra_tf.platform.errors import UserError


def main(directory: str) -> None:
    """Prints a survey of the records of a directory; writes the page for --html."""
    values = flags.FLAGS
    masking = resolve(changes=overrides.given_settings({})).masking
    data_dir = storage.path(directory)
    if not data_dir.is_dir():
        raise UserError(f"{directory} is not a directory; name the directory of the records that "
                        "`python -m data_prep.build_pretraining_data` built.")
    page = None if values.html is None else storage.path(values.html)
    # Checked here: reading can take minutes.
    if page is not None and (not values.html or page.is_dir() or (
            isinstance(page, pathlib.Path) and not page.parent.is_dir())):
        raise UserError("--html must name a file in a directory that exists, such as "
                        f"records.html. Received: {values.html!r}")
    from electra_tf.apps.inspection import report  # TensorFlow takes seconds.
    from electra_tf.apps.inspection.survey import masked_examples, take_survey

    survey = take_survey(data_dir)
    examples = masked_examples(survey, values.examples, masking, seed=values.seed, draws=3)
    print(data_dir, report.text(survey, examples), sep="\n\n")
    if page is not None:
        atomic_file.write_atomically(page, report.page(survey, examples, str(data_dir)).encode())
        print(f"wrote {page}")


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_integer("examples", 3, "Number of examples to show as text.", 0, 1000)
    flags.DEFINE_integer("seed", 1, "Seed of the choice of examples and of their masks.",
                         0, 2**32 - 1)
    flags.DEFINE_string("html", None, "HTML file to write as well, with segments and masks in "
                        "color.")
    overrides.define_setting_flags({}, SIZES)


run = functools.partial(command_line.run, main, define, summary=__doc__, operand="DIR", groups={
    "What is shown": ["examples", "seed", "html"], "Masking, section.field=value": ANY_SETTING})

if __name__ == "__main__":
    run()
