"""The flags of the measures of cleaning that look at a line alone, for all commands."""

from absl import flags

from data_prep.cleaning.settings import UNICODE_FORMS, CleaningSettings

LINE_RULES = ("unicode", "drop_letterless_lines", "drop_boilerplate", "min_line_characters",
              "max_line_characters")
"""Their names."""

_DEFAULT = CleaningSettings()

flags.DEFINE_string("unicode", _DEFAULT.unicode, "Unicode normalization form of the text, before "
                    f"anything else is done to it: {', '.join(UNICODE_FORMS)}.")
flags.DEFINE_bool("drop_letterless_lines", _DEFAULT.drop_letterless_lines,
                  "Drop lines without a letter.")
flags.DEFINE_bool("drop_boilerplate", _DEFAULT.drop_boilerplate,
                  "Drop lines that are cookie notices, menus, buttons, claims of rights and the "
                  "like; see docs/cleaning.md.")
flags.DEFINE_integer("min_line_characters", _DEFAULT.min_line_characters,
                     "Drop lines of fewer characters.")
flags.DEFINE_integer("max_line_characters", _DEFAULT.max_line_characters,
                     "Drop lines of more characters; 0: none.")


def line_rules() -> CleaningSettings:
    """Returns what the command line wants of these measures, the others being off."""
    return CleaningSettings(**{name: flags.FLAGS[name].value for name in LINE_RULES})
