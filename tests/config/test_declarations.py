"""Every setting is declared once, and what derives from the declaration agrees with it."""

import dataclasses
from pathlib import Path
from typing import Annotated, Literal

import pytest
from annotated_types import Interval

from data_prep.settings import BuildSettings, CleaningSettings
from docs.generate_settings import settings_page
from electra_tf.config.finetuning import FinetuningConfig
from electra_tf.config.objectives import OBJECTIVES
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.core.errors import UserError
from electra_tf.core.setting_flags import display_value
from electra_tf.core.settings import LARGEST_COUNT, Section, setting, settings_of


class Example(Section, prefix="example."):
    """A section."""

    rate: Annotated[float, Interval(gt=0, lt=1)] = setting(0.5, """Fraction
        of everything.""")
    steps: Annotated[int, Interval(ge=0, le=LARGEST_COUNT)] = 2_000
    form: Literal["flat", "deep"] = setting("flat", "Form.")
    languages: tuple[str, ...] = ()
    workers: Annotated[int | None, Interval(ge=1)] = None
    other: dict = dataclasses.field(default_factory=dict)


EXAMPLE = settings_of(Example)


def sections():
    for config in (PretrainingConfig(), FinetuningConfig()):
        for field in dataclasses.fields(config):
            yield f"{field.name}.", getattr(config, field.name)
    yield from (("objective.", objective) for objective in OBJECTIVES.values())
    yield from (("--", kind()) for kind in (BuildSettings, CleaningSettings))


def test_every_setting_has_a_meaning_bounds_and_its_users_name():
    known = [(prefix + name, setting) for prefix, section in sections()
             for name, setting in settings_of(type(section)).items()]
    assert [name for name, setting in known if not setting.meaning or setting.name != name] == []
    assert [name for name, setting in known
            if setting.kind in (int, float) and not setting.allowed] == []


def test_the_page_in_docs_is_the_one_that_the_tool_prints():
    page = Path(__file__).parents[2] / "docs" / "configuration.md"
    assert page.read_text() == settings_page()


def test_a_declaration_has_type_bounds_choices_and_meaning():
    assert list(EXAMPLE) == ["rate", "steps", "form", "languages", "workers"]
    assert EXAMPLE["rate"].meaning == "Fraction of everything."
    assert EXAMPLE["form"].meaning == "Form. One of `flat`, `deep`."
    assert (EXAMPLE["rate"].allowed, EXAMPLE["workers"].allowed) == ("in (0, 1)", "1 or more")
    assert EXAMPLE["steps"].allowed == "0 or more and at most 2,147,483,647"
    assert [*map(display_value, (2_000, 1e-6, True, ["a"]))] == ["2,000", "1e-06", "true", "a"]


@pytest.mark.parametrize(("values", "words"), [
    ({"rate": 1.0}, "example.rate must be in (0, 1). Received: 1.0"),
    ({"rate": float("nan")}, "example.rate must be in (0, 1). Received: nan"),
    ({"steps": -1}, "example.steps must be 0 or more"), ({"workers": 0}, "1 or more. Received: 0"),
    ({"form": "flet"}, "one of flat, deep. Received: 'flet'. Did you mean 'flat'?")])
def test_a_value_out_of_bounds_is_refused_when_the_section_is_made(values, words):
    with pytest.raises(UserError) as error:
        Example(**values)
    assert words in str(error.value)


def test_text_is_read_by_the_declared_type():
    assert EXAMPLE["languages"].read("en, de") == ("en", "de")
    assert EXAMPLE["steps"].read("1e3") == 1000 and EXAMPLE["workers"].read("2") == 2
    with pytest.raises(UserError, match="example.steps must be a whole number"):
        EXAMPLE["steps"].read("1.5")
    for text in ("1 # c", "0.5# half", "#", "1\n2", "\udcff", "0.5\0"):
        with pytest.raises(UserError, match="example.rate must be a finite number. Received: "):
            EXAMPLE["rate"].read(text)
    for value in (5, ["en", 5], {"en": "de"}):
        with pytest.raises(UserError, match="example.languages must be a list with commas"):
            EXAMPLE["languages"].read(value)
