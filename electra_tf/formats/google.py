"""Reads and writes checkpoints of Google's ELECTRA code, whose names of weights are ours.

They do not contain the number of attention heads and dropout rates. `bert_config.json` beside them
has these, as in BERT's releases, whose encoders are read too.
"""

import re
from typing import Annotated, Literal

import tensorflow as tf
from annotated_types import Ge

from electra_tf.checkpoints.weights import ENCODER, Weights, open_reader
from electra_tf.config.model import ModelConfig, Tying, heads_of_64_units
from electra_tf.core import storage, strict_json
from electra_tf.core.atomic_file import make_directory, write_json
from electra_tf.core.errors import UserError
from electra_tf.core.storage import Path
from electra_tf.formats import parts
from electra_tf.formats.pretrained import BERT_NAMES, BERT_TRAINING_NAMES, Checkpoint
from electra_tf.text.normalization import Normalization, TextSettings
from electra_tf.text.vocabulary import VOCABULARY_FILE

PREFIX, CONFIG_FILE = "model.ckpt", "bert_config.json"
_PUBLISHED_HEADS = {(256, 12): 4, (768, 12): 12, (1024, 24): 16}
"""(Hidden size, layers) of the published models -> attention heads, which no shape shows."""


def read(prefix: str, vocab_file: Path | None, normalization: Normalization | None,
         num_heads: int | None) -> Checkpoint:
    """Returns the networks of a checkpoint of Google's code, and the encoder of BERT's."""
    vocab_file = vocab_file or storage.path(prefix).parent / VOCABULARY_FILE
    text = TextSettings.load(vocab_file, normalization, cased_fix=(
        "Convert the checkpoint: python -m electra_tf.apps.tools.convert_checkpoint "
        f"--from={prefix} --to=NEW_DIRECTORY --to_format=run --nolower_case"))
    with open_reader(prefix) as reader:
        stored = reader.get_variable_to_shape_map()
        # The name of an optimizer's slot begins with that of its weight.
        names = [name for name in stored if name.rpartition("/")[0] not in stored]
        # The encoder, and the networks' other parts; a task's head and global_step are left out.
        scope = "bert" if any(name.startswith("bert/") for name in names) else "electra"
        used = re.compile(f"{scope}/(embeddings|encoder)|generator|discriminator_predictions/")
        parts.note_unused([name for name in names if stored[name] and not used.match(name)], prefix)
        weights = {re.sub("^bert/", ENCODER, name): reader.get_tensor(name)
                   for name in names if used.match(name)}
    model = infer_model(weights, prefix, num_heads)
    _require_heads_of_64_units(model, prefix)
    model, weights = parts.drop_padding_rows(model, weights, text.vocabulary, prefix)
    checkpoint = Checkpoint(source=prefix, config=model, text=text, weights=weights)
    parts.require_networks(checkpoint)
    return checkpoint


def write(checkpoint: Checkpoint, directory: Path) -> None:
    """Writes `model.ckpt.*`, as TensorFlow 1's saver does, `vocab.txt` and `bert_config.json`."""
    parts.require_pretrained(checkpoint)
    _require_heads_of_64_units(checkpoint.config, checkpoint.source)
    make_directory(directory)
    # One op writes the names and values that TensorFlow 1's saver would.
    names = sorted(checkpoint.weights)
    tf.raw_ops.SaveV2(
        prefix=tf.constant(str(directory / PREFIX)), tensor_names=tf.constant(names),
        shape_and_slices=tf.constant([""] * len(names)),
        tensors=[tf.constant(checkpoint.weights[name]) for name in names])
    checkpoint.text.save(directory / VOCABULARY_FILE)
    # The settings, under BERT's names.
    write_json(directory / CONFIG_FILE, {
        bert_name: getattr(checkpoint.config, name) for name, bert_name in BERT_NAMES.items()})


def _require_heads_of_64_units(model: ModelConfig, source: str) -> None:
    is_wide = round(model.hidden_size * model.generator_width) == model.hidden_size
    if (is_wide and model.tying is not Tying.EVERYTHING
            and model.num_heads != heads_of_64_units(model.hidden_size)):
        raise UserError(f"{source}: the generator is as wide as the discriminator, whose heads "
                        f"have {model.hidden_size // model.num_heads} units. Google's code gives "
                        "a generator heads of 64 units. Use the format run or hugging_face, which "
                        "hold the number of heads.")


def infer_model(weights: Weights, source: str, num_heads: int | None = None) -> ModelConfig:
    """Returns the shape of networks from their weights, with or without a generator.

    `bert_config.json` beside them has settings that no shape shows. Refuses weights without an
    encoder, and sizes of no published model without `num_heads`.
    """
    def shape(name: str) -> tuple[int, ...]:
        sizes = weights[name].shape if name in weights else ()
        if len(sizes) != (2 if name.endswith("_embeddings") else 1) or 0 in sizes:
            raise UserError(f"{source} is not an ELECTRA checkpoint: it has no {name} of a "
                            "possible shape.")
        return sizes

    # Sizes that the shapes of weights show.
    vocab_size, embedding_size = shape("electra/embeddings/word_embeddings")
    hidden_size = shape("electra/encoder/layer_0/attention/self/query/bias")[0]
    num_layers = sum(name.startswith("electra/") and name.endswith("self/query/bias")
                     for name in weights)
    # Sizes that only bert_config.json shows, or the published model of this shape.
    path, config = storage.path(source).parent / CONFIG_FILE, _BertConfig()
    if path.exists():
        config = strict_json.read(path, _BertConfig, fix=(
            "correct it; or remove it, and give --num_heads to "
            "electra_tf.apps.tools.convert_checkpoint."))
    if config.num_hidden_layers not in (None, num_layers):
        raise UserError(f"{path}: num_hidden_layers is {config.num_hidden_layers}, and {source} "
                        f"has {num_layers} layers; put this checkpoint's own file there.")
    # By the caller, by the file, or by the published model of this width and depth.
    num_heads = (num_heads or config.num_attention_heads
                 or _PUBLISHED_HEADS.get((hidden_size, num_layers)))
    if num_heads is None:
        raise UserError(
            f"{source} doesn't say how many attention heads it has (num_attention_heads of "
            f"{CONFIG_FILE} beside it), and {num_layers} layers of {hidden_size} units are no "
            "published model's. Convert it: python -m "
            f"electra_tf.apps.tools.convert_checkpoint --from={source} --to=NEW_DIRECTORY "
            "--to_format=run --num_heads=HEADS")
    return parts.infer_generator(ModelConfig(
        vocab_size=vocab_size, embedding_size=embedding_size, hidden_size=hidden_size,
        num_layers=num_layers, num_heads=num_heads,
        intermediate_size=shape("electra/encoder/layer_0/intermediate/dense/bias")[0],
        max_position_embeddings=shape("electra/embeddings/position_embeddings")[0],
        type_vocab_size=shape("electra/embeddings/token_type_embeddings")[0],
        **{name: getattr(config, bert_name) for name, bert_name in BERT_TRAINING_NAMES.items()
           if getattr(config, bert_name) is not None}), weights, source)


class _BertConfig(strict_json.OpenObject):
    hidden_act: Literal["gelu"] = "gelu"
    num_hidden_layers: int | None = None
    num_attention_heads: Annotated[int, Ge(1)] | None = None
    hidden_dropout_prob: float | None = None
    attention_probs_dropout_prob: float | None = None
    initializer_range: float | None = None
