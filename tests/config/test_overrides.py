import pytest

from electra_tf.config.finetuning import FinetuningConfig
from electra_tf.config.model import Tying
from electra_tf.config.overrides import (
    flatten,
    override,
    parse_assignments,
    read_yaml,
    setting_of,
)
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.config.runtime import Xla
from electra_tf.core.errors import UserError

CONFIG = PretrainingConfig()


def test_text_becomes_the_type_of_the_setting_and_flattening_gives_it_back():
    changed = override(CONFIG, {
        "masking.rate": "0.2", "training.num_train_steps": "1e6", "training.seed": "1_000",
        "model.tying": "none", "runtime.deterministic": "yes", "objective.name": "mlm"})
    assert (changed.masking.rate, changed.training.num_train_steps) == (0.2, 1_000_000)
    assert (changed.training.seed, changed.model.tying) == (1000, Tying.NONE)
    assert changed.runtime.deterministic is True and changed.objective.name == "mlm"
    assert override(CONFIG, flatten(changed)) == changed


def test_a_file_means_what_stands_there_whatever_yaml_makes_of_it(tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text("runtime:\n  xla: on\n  deterministic: on\n  tpu: 2026-01-01\n"
                    "masking:\n  rate: 25e-2\ntraining: {seed: 1_000}\n")
    changed = override(CONFIG, read_yaml(path))
    assert changed.runtime.xla is Xla.ON and changed.runtime.deterministic is True
    assert changed.runtime.tpu == "2026-01-01"
    assert (changed.masking.rate, changed.training.seed) == (0.25, 1000)


@pytest.mark.parametrize(("changes", "words"), [
    ({"masking.rte": 0.2}, ["masking.rte", "Did you mean 'masking.rate'"]),
    ({"masking.rate": "1.5"}, ["masking.rate", "in (0, 1)", "1.5"]),
    ({"masking.rate": "nan"}, ["masking.rate", "finite number", "nan"]),
    ({"training.seed": "1.5"}, ["training.seed", "whole number", "1.5"]),
    ({"training.seed": "010"}, ["training.seed", "whole number", "'010'"]),
    ({"training.seed": 10**5000}, ["training.seed", "at most 2,147,483,647", "too many digits"]),
    ({"model.vocab_size": 1 << 24, "model.embedding_size": 1 << 16},
     ["the model must be one of at most 20,000,000,000 parameters"]),
    ({"training.precision": "int8"}, ["training.precision", "bfloat16", "int8"]),
    ({"model.num_heads": 3}, ["model.hidden_size", "multiple of model.num_heads=3"]),
    ({"initialization.scheme": "adjacent", "model.embedding_size": 1},
     ["the size of embeddings", "4 or more for initialization.scheme=adjacent", "Received: 1"]),
    ({"runtime.tpu": "x", "runtime.distribution_strategy": "mirrored"}, ["tpu='x'", "mirrored"]),
])
def test_a_wrong_setting_is_one_line_that_names_it(changes, words):
    with pytest.raises(UserError) as error:
        override(CONFIG, changes)
    assert "\n" not in str(error.value)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(("text", "words"), [
    ("masking:", ["'masking' must be fields"]), ("masking: {rate: 1", ["not valid YAML"]),
    ("masking: {rate: 1}\nmasking: {rate: 2}", ["'masking' occurs twice"]),
    ("masking: {rate: [1]}", ["'masking.rate' must be one value"]),
    ("a: {b: 1}\n---\na: {b: 1}", ["single document"]), ("[" * 50_000, ["not valid YAML"]),
    ("a" * 100_000, ["larger than 65,536 bytes"]), ("\ud800", ["not valid YAML"]),
])
def test_a_wrong_file_is_one_line_that_names_it(tmp_path, text, words):
    path = tmp_path / "run.yaml"
    path.write_text(text, errors="surrogatepass")
    with pytest.raises(UserError) as error:
        read_yaml(path)
    for word in [str(path), *words]:
        assert word in str(error.value)
    assert "\n" not in str(error.value)
    with pytest.raises(UserError, match="none.yaml can't be read"):
        read_yaml(tmp_path / "none.yaml")


@pytest.mark.parametrize(("name", "text", "values"), [
    ("optimizer.learning_rate", "1e-4, 3e-4", (1e-4, 3e-4)),
    ("task.long_texts", "truncate,windows", ("truncate", "windows")),
    ("runtime.report_to", "wandb,mlflow", None), ("runtime.tpu", "a,b", None),
    ("training.seed", "7", None)])
def test_commas_separate_several_values_of_settings_that_are_no_lists(name, text, values):
    assert setting_of(FinetuningConfig(), name).read_several(text) == values


def test_assignments_split_at_the_first_equals_sign():
    assert parse_assignments(["a.b=c=d", " a.c = 1 "]) == {"a.b": "c=d", "a.c": "1"}
    with pytest.raises(UserError, match="section.field=value"):
        parse_assignments(["a.b"])
