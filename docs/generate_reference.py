"""Writes docs/configuration.md from the settings and docs/reference/python.md from docstrings.

    python -m docs.generate_reference
"""

import ast
import dataclasses
import inspect
import pathlib
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import electra_tf
from electra_tf.config.finetuning import FinetuningConfig, finetuning_config
from electra_tf.config.model import MODEL_SIZES
from electra_tf.config.objectives import OBJECTIVES
from electra_tf.config.overrides import defaults, flags_of, override, setting_of
from electra_tf.config.pretraining import SIZES
from electra_tf.core.setting_flags import meaning
from electra_tf.core.settings import Section, settings_of

SETTINGS_HEAD = """\
# Configuration

This page lists every setting of `run_pretraining.py` and `run_finetuning.py` with its default for
each model size and its bounds. Change a setting by its flag, by `--set section.field=value`, or in
a YAML file for `--config`:

```yaml
masking:
  rate: 0.2
optimizer:
  learning_rate: 1e-3
```

Flags take precedence over `--set`, `--set` over the file, the file over `--recipe`, and the recipe
over the size. `--recipe=short` [changes some defaults](explanation/short_runs.md). A misspelt name
or a value out of bounds is an error.

A run resumes only with the settings that it started with. The exceptions are `runtime`, which
changes results by rounding only, and `initialization`, which has no effect once there is a
checkpoint.

`python -m docs.generate_reference` writes this page.

# Pre-training
"""
FINETUNING_HEAD = """\
# Fine-tuning

Defaults are those of the general recipe. RTE and STS-B train for 10 epochs, extractive QA for 2 on
rows of 512 tokens. MRPC and STS-B swap pairs. Warm-up is a tenth of the run. The encoder determines
the shapes of `model`; its dropout is 0.1. `initialization` (from scratch) and `runtime` are as
above.
"""
API_HEAD = '''\
# Python API

`import electra_tf` lets other programs use pre-trained and fine-tuned networks. It loads TensorFlow
when the first name is used. [Work in Python](../how_to/python.md) has complete programs, and the
[notebook](../tutorials/python_api.ipynb) uses the whole API. `python -m docs.generate_reference`
writes this page from docstrings.

```python
import electra_tf

electra = electra_tf.load("google/electra-small-discriminator")   # or a run, or a directory
electra.embed(["First text.", "Second text."])   # one vector per text, float32 [2, H]
electra.embed(["First text."], pooling="cls")    # the vector of [CLS] instead of the mean
electra.detect("The chef ate the piano.")        # words with probabilities of being replaced
electra.fill("The [MASK] cooked the meal.")      # the generator's words for each [MASK]

classifier = electra_tf.load_task("runs/sst2")   # any fine-tuned run
classifier.predict(["A fine film."])             # a dictionary for each text
```

- The names below are public; other modules may change. mypy checks the type hints. `PathName` is
  `str | os.PathLike[str]`.
- Invalid input raises `electra_tf.core.errors.UserError`, a `ValueError` of one line.
- `detect` needs a discriminator and `fill` a generator. A pre-training run has both.

## The encoder in your own model

```python
import tensorflow as tf
import tf_keras

texts = tf_keras.Input([], dtype=tf.string)
vectors = electra.encoder(texts)                 # [B, L, H], with the mask of Keras
topics = tf_keras.layers.Dense(4)(vectors[:, 0])
model = tf_keras.Model(texts, topics)
loss = tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(tf_keras.optimizers.Adam(1e-4), loss)
model.fit(tf.constant(["A text.", "Another one."]), tf.constant([0, 3]))
model.save("topics.keras")
electra.save("runs/topics_encoder")              # the trained encoder, as a run

from electra_tf import ElectraEncoder            # registers the layer in a new process
model = tf_keras.models.load_model("topics.keras")
```

- Inputs are texts, pairs of texts, token ids, or a mapping with ids. Batches and rows may have any
  size. A mapping may have the names of Hugging Face: `input_ids`, `attention_mask`,
  `token_type_ids`. Ids must be in the vocabulary.
- `["a", "b"]` is two texts, `[("a", "b")]` is one pair. A string tensor [B, 2] has a pair in each
  row. For two inputs of a model, call `electra.encoder([question, text])`: a list of two tensors,
  string [B] each, is the first and the second texts. A tuple of strings is refused.
- `electra.encoder(texts, output_hidden_states=True, output_attentions=True)` returns the vectors of
  all layers and the attention weights.
- `electra.encoder.tokens(pairs)` returns ids, segment ids and valid positions, for example in
  `tf.data`.
- The file contains the vocabulary. `.h5` and SavedModel directories work too. For the latter, Keras
  logs that inner layers are not serialized one by one.
- `fit` trains the encoder with the dropout of its configuration. To freeze it, set
  `electra.encoder.trainable = False`. To train the last two layers only, set `trainable` of every
  block in `electra.encoder.blocks[:-2]`. Keras does not save which blocks are frozen.
- The encoder computes in the policy of `tf_keras.mixed_precision` and returns float32. Set the
  policy before `load`; it must be `float32`, `mixed_bfloat16` or `mixed_float16`.
- `compile(jit_compile=True)` needs ids as inputs, because XLA has no strings. Tokenize in `tf.data`
  for it: `dataset.map(electra.tokenizer)`. The encoder refuses texts while XLA compiles.
- `pickle` and `joblib` keep `Electra` with its present weights, and `TaskModel` with its run's
  files.
- Use `tf_keras`. Models of Keras 3 (`keras`, `tf.keras`) would train the other layers only, so the
  encoder raises `UserError` in them. To use its vectors without training it, compute them before:
  `dataset.map(electra.encoder)`.

## Training

```python
classifier = electra_tf.finetune(
    "classification", ["A fine film.", "A dull film."] * 20, ["good", "bad"] * 20,
    init_checkpoint="google/electra-small-discriminator", num_train_epochs=2.0)
classifier.results.best.scores                   # split -> metric -> value
classifier.predict(["A fine film."])             # a dictionary for each text
classifier.evaluate(["A dull film."], ["bad"])   # metric -> value
classifier.save("runs/films")                    # for load_task and all commands

config = electra_tf.pretraining_config("small", recipe="short", num_train_steps=10_000)
scores = electra_tf.pretrain(config, data_dir="records", model_dir="runs/small")
films = electra_tf.finetune(
    "classification", "films.tsv", dev="films_dev.tsv", text_columns="text", label_column="label",
    init_checkpoint="runs/small", model_dir="runs/films_of_small")
```

Both functions continue an interrupted run in `model_dir`. [Settings](../configuration.md) lists all
fields. [How-to guides](../README.md) describe records and files.
'''
_SHARED = ("model", "initialization", "runtime")
"""Sections of both programs, listed once."""


def settings_page() -> str:
    """Returns docs/configuration.md."""
    recipes = {size: finetuning_config(model) for size, model in MODEL_SIZES.items()}
    sections = [field.name for field in dataclasses.fields(FinetuningConfig)
                if field.name not in _SHARED]
    parts = [
        SETTINGS_HEAD,
        *_sections(SIZES, [field.name for field in dataclasses.fields(SIZES["small"])],
                   "pretraining"),
        FINETUNING_HEAD, *_sections(recipes, sections, "finetuning")]
    return "\n".join(parts).rstrip() + "\n"


def _sections(sizes: Mapping[str, Any], names: Sequence[str],
              program: str) -> Iterator[str]:
    short = {setting.name: name for name, setting in flags_of(sizes["small"], program).items()}
    for name in names:
        here = getattr(sizes["small"], name)
        yield f"## {name}\n"
        yield f"{_first_line(here)}\n"
        yield from _table(name, settings_of(type(here)), sizes, short)
        for other, there in OBJECTIVES.items() if name == "objective" else ():
            if other == here.name:
                continue
            fields = [field for field in settings_of(type(there)) if field != "name"]
            others = {size: override(config, {f"{name}.name": other})
                      for size, config in sizes.items()}
            yield f"With `{name}.name={other}` ({_first_line(there)[:-1]}) instead:\n"
            yield from _table(name, fields, others, short)


def _first_line(section: Section) -> str:
    return inspect.getdoc(section).splitlines()[0]


def _table(section: str, fields: Iterable[str], sizes: Mapping[str, Any],
           short: Mapping[str, str]) -> Iterator[str]:
    yield "| setting | default | meaning | allowed |"
    yield "|---|---|---|---|"
    for field in fields:
        name = f"{section}.{field}"
        flag = f" (`--{short[name]}`)" if name in short else ""
        setting = setting_of(sizes["small"], name)
        yield (f"| `{name}`{flag} | {defaults(sizes, name)} | {meaning(setting)} "
               f"| {setting.allowed} |")
    yield ""


_SETTINGS = ("FinetuningConfig", "PretrainingConfig")
"""Classes whose fields are on a page of their own."""
_SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Example):\n((?: {4}.*\n?|\n)+)", re.M)
_ITEM = re.compile(r"^(\*{0,2}\w+)( \(.*?\))?: ", re.M)


def api_page() -> str:
    """Returns docs/reference/python.md."""
    names = sorted(electra_tf.__all__, key=str.lower)
    return "\n".join([API_HEAD, *(line for name in names for line in _entry(name))]).rstrip() + "\n"


def _entry(name: str) -> Iterator[str]:
    found = getattr(electra_tf, name)
    yield f"## {name}\n"
    if name in _SETTINGS:
        yield f"{inspect.getdoc(found).splitlines()[0]} See [settings](../configuration.md).\n"
        return
    made_by_caller = not inspect.isclass(found) or "Args:" in found.__doc__
    yield _described(found, f"electra_tf.{name}" if made_by_caller else "")
    if not inspect.isclass(found):
        return
    for member, value in vars(found).items():
        if member.startswith("_") or not inspect.getdoc(value) or issubclass(found, tuple):
            continue
        yield f"### {name}.{member}\n"
        value = getattr(value, "func", value)  # Of a cached property.
        is_property = isinstance(value, property) or value is not vars(found)[member]
        yield _described(getattr(value, "fget", value), "" if is_property else member)


def _described(value: Any, name: str) -> str:
    """Returns the signature as it is written, if `name` is not empty, and the docstring."""
    text = _SECTION.sub(_section, f"{inspect.getdoc(value)}\n")
    return (f"```text\n{_signature(value, name)}\n```\n\n" if name else "") + text


def _signature(value: Any, name: str) -> str:
    """Returns a call as the source writes it: a function's, or that of a class's `__init__`."""
    [node] = ast.parse(textwrap.dedent(inspect.getsource(value))).body
    result = f" -> {ast.unparse(node.returns)}" if isinstance(node, ast.FunctionDef) else ""
    if isinstance(node, ast.ClassDef):
        [node] = [one for one in node.body
                  if isinstance(one, ast.FunctionDef) and one.name == "__init__"]
    arguments = re.sub("^self(, )?", "", ast.unparse(node.args))
    return "\n".join(textwrap.wrap(f"{name}({arguments}){result}", 96, subsequent_indent="    "))


def _section(match: re.Match[str]) -> str:
    title, body = match[1], textwrap.dedent(match[2]).strip()
    if title == "Example":
        return f"```python\n{body}\n```\n"
    if title == "Returns":
        return f"**Returns**: {body}\n\n"
    items = _ITEM.sub(r"- `\1`\2: ", body).replace("\n    ", "\n  ")
    return f"**{title}**\n\n{items}\n\n"


if __name__ == "__main__":
    here = pathlib.Path(__file__).parent
    (here / "configuration.md").write_text(settings_page(), encoding="utf-8")
    (here / "reference" / "python.md").write_text(api_page(), encoding="utf-8")
