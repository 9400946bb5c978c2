"""Prints the public interface as the Markdown page docs/reference/python.md, from its docstrings.

    python -m electra_tf.apps.tools.list_api > docs/reference/python.md
"""

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any

from absl import flags

from electra_tf.platform import command_line

INTERFACE = importlib.import_module("electra_tf")
"""Imported by name: the page describes `electra_tf.api`, which apps do not use."""
HEAD = '''\
# Python API

`import electra_tf` gives pre-trained and fine-tuned networks to other programs. The import takes no
time. TensorFlow loads with the first name that is used. A [notebook](../tutorials/python_api.ipynb)
uses all of it. `python -m electra_tf.apps.tools.list_api` writes this page from docstrings.

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
- Mistakes raise `electra_tf.platform.errors.UserError`, a `ValueError` with a message of one line.
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

from electra_tf import ElectraEncoder            # registers the layer in a new process
model = tf_keras.models.load_model("topics.keras")
```

- Inputs are texts, token ids, or a mapping with ids. Batches and rows may have any size.
- The file holds the vocabulary. `.h5` and SavedModel directories work too. For the latter, Keras
  logs that inner layers are not serialized one by one.
- `fit` trains the encoder with the dropout of its configuration. To freeze it, set
  `electra.encoder.trainable = False`. To train the last two layers only, set `trainable` of every
  block in `electra.encoder.blocks[:-2]`. Keras does not save which blocks are frozen.
- The encoder computes in the policy of `tf_keras.mixed_precision` and returns float32. Set the
  policy before `load`.
- Use `tf_keras`. Keras 3 models do not accept its layers.

## Training

```python
import dataclasses

config = electra_tf.pretraining_config("small")
training = dataclasses.replace(config.training, num_train_steps=10_000)
config = dataclasses.replace(config, training=training)
scores = electra_tf.pretrain(config, data_dir="records", model_dir="runs/small")

results = electra_tf.finetune(
    "classification", init_checkpoint="runs/small", model_dir="runs/films",
    train="films.tsv", dev="films_dev.tsv", text_columns="text", label_column="label")
results.best.scores                              # split -> metric -> value
electra_tf.load_task("runs/films").predict(["A fine film."])
```

Both functions continue an interrupted run in `model_dir`. [Settings](../configuration.md) lists all
fields. [How-to guides](../README.md) describe records and files.
'''
_SETTINGS = ("FinetuningConfig", "PretrainingConfig")
"""Classes whose fields are on a page of their own."""
_SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Example):\n((?: {4}.*\n?|\n)+)", re.M)
_ITEM = re.compile(r"^(\*{0,2}\w+)( \(.*?\))?: ", re.M)


def page() -> str:
    """Returns the whole page."""
    names = sorted(INTERFACE.__all__, key=str.lower)
    return "\n".join([HEAD, *(line for name in names for line in _entry(name))]).rstrip() + "\n"


def _entry(name: str) -> Iterator[str]:
    found = getattr(INTERFACE, name)
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
        is_property = isinstance(value, property)
        yield _described(value.fget if is_property else value, "" if is_property else member)


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


def run() -> None:
    """Runs the command line."""
    command_line.run(
        lambda: print(page(), end=""), summary=__doc__,
        groups={"All flags": [name for name in flags.FLAGS if name == "help"]})


if __name__ == "__main__":
    run()
