"""Fits a checkpoint to a run that continues its pre-training.

The records can have added tokens or longer examples, and the run a generator that it lacks.

The row of an added token begins as the mean of the rows of its pieces, which the checkpoint has
read in its place so far (as in Sachidananda et al., 2021), or as [UNK]'s if it has no pieces.
Positions beyond the checkpoint's begin as copies of its positions, in order (as in Beltagy et al.,
2020, section 5).
"""

import dataclasses
import re
from collections.abc import Iterable

import numpy as np
import tensorflow as tf

from electra_tf.checkpoints.weights import Weights
from electra_tf.config.model import Positions
from electra_tf.core.errors import UserError, shown
from electra_tf.formats.pretrained import Checkpoint
from electra_tf.modeling.parameter_shapes import ENCODER, FINAL_NORM, GENERATOR
from electra_tf.text.normalization import MODES, TextSettings
from electra_tf.text.vocabulary import CONTINUATION, Vocabulary

_UNUSED = re.compile(r"\[unused\d+\]")
"""Lines of BERT's vocabularies that are free for tokens of a domain."""


def fit(initial: Checkpoint, text: TextSettings, max_positions: int, records: str
        ) -> tuple[Checkpoint, list[str]]:
    """Returns a checkpoint with a row for every token and position, and what is new as text.

    `text` is that of the records in the directory `records`. Its vocabulary may have more tokens
    after the checkpoint's, and other tokens in [unusedN] lines; `UserError` for other differences.
    There are `max_positions`, unless the checkpoint has more.
    """
    # Ids whose tokens differ, which is allowed where either one is [unusedN].
    require_same_normalization(initial, text, records)
    old, new = initial.text.vocabulary, text.vocabulary
    changed = [index for index, tokens in enumerate(zip(old.tokens, new.tokens, strict=False))
               if tokens[0] != tokens[1]]
    conflicts = [index for index in changed if not (
        _UNUSED.fullmatch(old.tokens[index]) or _UNUSED.fullmatch(new.tokens[index]))]
    advice = ("New tokens may only follow its last line or replace [unusedN] lines. Build the "
              f"records again with --vocab_file={old.source}, or a copy with new tokens.")
    if new.size < old.size:
        raise UserError(f"the vocabulary of the records in {records} has {new.size} tokens, fewer "
                        f"than the {old.size} of {initial.source}. {advice}")
    if conflicts:
        line = conflicts[0]
        raise UserError(
            f"the vocabulary of the records in {records} differs from the vocabulary of "
            f"{initial.source} in {len(conflicts)} lines, first in line {line + 1}: "
            f"{shown(new.tokens[line])} instead of {shown(old.tokens[line])}. {advice}")

    # Every added token as pieces of the checkpoint's vocabulary.
    added = [*(index for index in changed if not _UNUSED.fullmatch(new.tokens[index])),
             *range(old.size, new.size)]  # Ids of tokens that the checkpoint has in no such line.
    pieces = [pieces_of(new.tokens[index], old) for index in added]

    # Word tables [V, E] and output biases [V] get the means of the pieces' rows; position tables
    # [L, E] are repeated, which is what `np.resize` does.
    weights, positions = dict(initial.weights), initial.config.max_position_embeddings
    for name, value in initial.weights.items():
        if name.endswith(("/word_embeddings", "/output_bias")):
            rows = np.resize(value, (new.size, *value.shape[1:]))
            for index, ids in zip(added, pieces, strict=True):
                rows[index] = value[ids].mean(axis=0)
            weights[name] = rows
        elif name.endswith("/position_embeddings"):
            weights[name] = np.resize(value, (max(positions, max_positions), value.shape[1]))

    # What is new, as text, and the checkpoint in its new shape.
    unknown = pieces.count([old.unk_id])
    notes = [f"{count} token{'s' * (count > 1)} ({start})" for count, start in (
        (len(added) - unknown, "mean of their pieces"), (unknown, "copies of [UNK]")) if count]
    if max_positions > positions and initial.config.positions == Positions.LEARNED:
        notes.append(f"positions {positions} to {max_positions - 1} (copies of the first "
                     f"{positions})")
    model = dataclasses.replace(initial.config, vocab_size=new.size,
                                max_position_embeddings=max(positions, max_positions))
    return dataclasses.replace(initial, weights=weights, config=model, text=text), notes


def copy_to_generator(weights: Weights, variables: Iterable[tf.Variable]
                      ) -> tuple[Weights, list[str]]:
    """Returns weights with a generator made of the encoder's first layers, and what is new as text.

    There is no copy if the weights have a generator already, or if a variable of the generator has
    another shape than the encoder's. The head that predicts tokens stays above its own encoder:
    a generator without a copy has a new one, and so has the encoder of a masked language model if
    the weights have a generator.
    """
    # The encoder's weight for each of the generator's, if all have the same shapes.
    shapes = {variable.name.split(":")[0]: tuple(variable.shape) for variable in variables
              if variable.name.startswith(f"{GENERATOR}/")}
    sources = {name: ENCODER + name.removeprefix(GENERATOR) for name in shapes}
    above = next((name for name in weights if name.endswith(f"/{FINAL_NORM}/gamma")), None)
    sources |= {name: above for name in shapes if above and name.endswith(f"/{FINAL_NORM}/gamma")}
    # Electric's generator can have embeddings alone; its towers have other names.
    has_generator = any(name.startswith(f"{GENERATOR}/encoder/") for name in weights) or (
        bool(shapes) and shapes.keys() <= weights.keys())
    if has_generator == bool(shapes):
        return weights, []
    if has_generator or any(source not in weights or weights[source].shape != shapes[name]
                            for name, source in sources.items()):
        return {name: value for name, value in weights.items()
                if not name.startswith((f"{GENERATOR}_predictions/", f"{GENERATOR}/"))}, []
    layers = len({*re.findall(r"/encoder/layer_\d+/", " ".join(shapes))})
    copies: Weights = {name: weights[source] for name, source in sources.items()}
    copied = {0: "embeddings", 1: "first layer"}.get(layers, f"first {layers} layers")
    return {**weights, **copies}, [f"generator (copy of the encoder's {copied})"]


def require_same_normalization(initial: Checkpoint, text: TextSettings, records: str) -> None:
    """Raises `UserError` unless text has equal letters; long words and final sigmas may differ."""
    normalization = initial.text.normalization
    if not normalization.same_letters(text.normalization):
        mode = next((name for name, mode in MODES.items() if mode.same_letters(normalization)),
                    None)
        build = f"`python -m data_prep.build_pretraining_data --normalization={mode}`"
        advice = f"Build them again with {build}, or train" if mode else "Train"
        raise UserError(f"{initial.source} reads text with normalization {normalization}, but the "
                        f"records in {records} were built with {text.normalization}. {advice} "
                        "new weights without --init_checkpoint.")


def pieces_of(token: str, vocabulary: Vocabulary) -> list[int]:
    """Returns the ids of the longest pieces of a token, first to last (WordPiece); or [UNK]'s.

    A token that begins with "##" continues a word, and so do all its pieces.
    """
    # The longest known piece at each position; later ones begin with "##" in the vocabulary.
    ids, start = [], 0
    stem = token.removeprefix(CONTINUATION) or token
    prefix = CONTINUATION if stem != token else ""
    while start < len(stem):
        end = next((end for end in range(len(stem), start, -1)
                    if prefix + stem[start:end] in vocabulary.ids), None)
        if end is None:
            return [vocabulary.unk_id]
        ids.append(vocabulary.ids[prefix + stem[start:end]])
        start, prefix = end, CONTINUATION
    return ids
