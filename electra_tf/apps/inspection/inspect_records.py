r"""Shows what a directory of records holds, before a run is spent on it.

    python -m electra_tf.apps.inspection.inspect_records records
    python -m electra_tf.apps.inspection.inspect_records records --html=records.html \
        --set masking.rate=0.25

Prints the manifest, how long examples are, words and [UNK] by script, frequent and rare pieces,
text that is there more than once (in held-out and training examples, too), and some examples with
the masks that training would draw for them. --html writes the same as a page, with colours. All
examples are read, in memory that doesn't grow with them: docs/inspecting_records.md.
"""

import pathlib
import time

from absl import flags

from electra_tf.config import pretraining_flags, recipes, setting_flags
from electra_tf.config.setting_flags import ANY_SETTING
from electra_tf.config.sizes import SIZES
from electra_tf.platform import atomic_file, command_line, storage
from electra_tf.platform.errors import UserError

DIRECTORY = "DIR"
DRAWS = 3
"""Of masks, which the page shows one after another."""
_EVERYTHING = 1 << 62
GROUPS = {"What is read": ("max_examples",), "What is shown": ("examples", "seed", "html"),
          "Masking, section.field=value": ANY_SETTING}


def main(directory: str) -> None:
    """Reads, counts, prints; writes the page if one is asked for.

    Args:
        directory: of the records.

    Raises:
        UserError: there are no records, they are damaged, a setting is wrong, or the page can't be
            written.
    """
    values = flags.FLAGS
    masking = pretraining_flags.build_config(
        None, recipes.PAPER, setting_flags.given_settings(())).masking
    data_dir = storage.path(directory)
    _require_one(directory, data_dir)
    page = _page(values.html)
    # Imported here: TensorFlow takes seconds.
    from electra_tf.apps.inspection import examples, reading, show, survey

    records = reading.open_records(data_dir)
    began = time.perf_counter()
    found = survey.survey(records, values.max_examples or _EVERYTHING)
    seconds = time.perf_counter() - began
    masked = examples.masked_examples(found, values.examples, masking, seed=values.seed,
                                      draws=DRAWS)
    read = sum(counts.examples for counts in found.splits.values())
    print(data_dir, show.text(found, masked), f"read {read:,} examples in {seconds:.1f} s: "
          f"{read / seconds:,.0f} examples/s", sep="\n\n")
    if page is not None:
        atomic_file.write_atomically(page, show.page(found, masked, str(data_dir)).encode())
        print(f"wrote {page}")


def _require_one(directory: str, data_dir: storage.Path) -> None:
    """Refuses several directories, which run_pretraining.py takes, and what is no directory."""
    if data_dir.is_dir():
        return
    if "," in directory:
        raise UserError(f"{directory} names several directories; look at one at a time.")
    problem = "is a file" if data_dir.exists() else "does not exist"
    raise UserError(f"{directory} {problem}; name a directory of records that `python -m "
                    "data_prep.build_pretraining_data` built.")


def _page(name: str | None) -> storage.Path | None:
    """Returns the page's path, if one is asked for; refuses it before records are read."""
    if name is None:
        return None
    path = storage.path(name)
    if not name or path.is_dir():
        raise UserError(f"--html must name a file, such as records.html. Received: {name!r}")
    if isinstance(path, pathlib.Path) and not path.parent.is_dir():
        raise UserError(f"cannot write {path}: {path.parent} is no directory; make it, or name "
                        "another file.")
    return path


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_integer("max_examples", 0, "Read so many training and so many held-out examples "
                         "at most, the first ones of every shard; 0 reads all.", lower_bound=0)
    flags.DEFINE_integer("examples", 3, "So many examples are shown as text.", 0, 1000)
    flags.DEFINE_integer("seed", 1, "Decides which examples are shown, and their masks.",
                         0, 2**32 - 1)
    flags.DEFINE_string("html", None, "Write a page, too: the same, with segments and masks in "
                        "colour.")
    setting_flags.define((), SIZES)


if __name__ == "__main__":
    define()
    command_line.run(main, summary=__doc__, groups=GROUPS, operand=DIRECTORY)
