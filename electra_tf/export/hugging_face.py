"""Writes Hugging Face's directories; `checkpoints/hugging_face` reads them."""

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
from safetensors.numpy import save

from electra_tf.checkpoints.hugging_face import files
from electra_tf.checkpoints.hugging_face.networks import (
    ARCHITECTURES,
    DISCRIMINATOR,
    GENERATOR,
    theirs_of,
    turned,
)
from electra_tf.checkpoints.hugging_face.weight_files import WEIGHTS_FILE
from electra_tf.checkpoints.pretrained import Pretrained
from electra_tf.checkpoints.run_directory import VOCABULARY_FILE
from electra_tf.checkpoints.shapes import has_generator, require_exactly, require_networks
from electra_tf.config.model import EncoderConfig
from electra_tf.export import hugging_face_heads as heads
from electra_tf.modeling.weight_table import discriminator, generator, whole_encoder
from electra_tf.platform.atomic_file import make_directory, write_atomically
from electra_tf.platform.storage import Path
from electra_tf.tasks.task import TaskSpec
from electra_tf.text.tokenization import TextSettings
from electra_tf.text.tokenizer import LONG_WORD_CUT
from electra_tf.text.vocabulary import (
    CLS,
    CONTINUATION,
    MASK,
    MAX_WORD_CHARACTERS,
    PAD,
    SEP,
    SPECIAL_TOKENS,
    UNK,
    Vocabulary,
)


def write(networks: Pretrained, directory: Path) -> None:
    """Writes `discriminator/`, and `generator/` if it is known; a fine-tuned model as it is.

    Raises:
        UserError: the weights aren't exactly those of a discriminator, or of it and a generator, or
            of an encoder with a head that Hugging Face has; the directory can't be written.
    """
    model = networks.model
    if networks.task is not None:
        head = heads.to_theirs(
            TaskSpec.of_facts(networks.task), networks.weights, networks.source)
        shapes = whole_encoder(model.discriminator)
        require_exactly({name: value for name, value in networks.weights.items()
                         if not name.startswith(heads.HEAD)}, shapes, networks.source)
        _write_network(networks, directory, model.discriminator, shapes, head)
        return
    require_networks(networks.weights, model, networks.source)
    parts = {DISCRIMINATOR: (model.discriminator, discriminator(model.discriminator).weights)}
    if has_generator(networks.weights):
        parts[GENERATOR] = model.generator, generator(model).weights
    for name, (encoder, shapes) in parts.items():
        _write_network(networks, directory / name, encoder, shapes, heads.Head(
            weights={}, config={"architectures": [ARCHITECTURES[name]]}))


def _write_network(networks: Pretrained, directory: Path, encoder: EncoderConfig,
                   names: Iterable[str], head: heads.Head) -> None:
    """Writes the four files that transformers reads; tokenizer.json too, for composed text.

    Args:
        networks: weights by our names, and how text becomes token ids.
        directory: made if need be.
        encoder: sizes.
        names: the weights to write.
        head: further weights and entries of config.json.
    """
    make_directory(directory)
    weights = {theirs_of(name): turned(name, networks.weights[name]) for name in names}
    content = save({name: np.ascontiguousarray(value)
                    for name, value in (weights | dict(head.weights)).items()},
                   metadata={"format": "pt"})
    write_atomically(directory / WEIGHTS_FILE, content)
    text, normalization = networks.text, networks.text.normalization
    config = {**head.config, **files.FIXED,
              **{theirs: getattr(encoder, ours)
                 for ours, theirs in (files.SIZES | files.OTHERS).items()},
              "pad_token_id": text.vocabulary.pad_id, "torch_dtype": "float32"}
    settings = {"tokenizer_class":
                "PreTrainedTokenizerFast" if normalization.nfc else "ElectraTokenizer",
                "do_lower_case": normalization.lower_case,
                "strip_accents": normalization.strip_accents, "tokenize_chinese_chars": True,
                "model_max_length": encoder.max_position_embeddings, "pad_token": PAD,
                "unk_token": UNK, "cls_token": CLS, "sep_token": SEP, "mask_token": MASK}
    contents = {files.CONFIG_FILE: config, files.TOKENIZER_SETTINGS_FILE: settings}
    if normalization.nfc:
        contents[files.TOKENIZER_FILE] = _composing_tokenizer(text)
    for file, content in contents.items():
        write_atomically(directory / file, (json.dumps(content, indent=2) + "\n").encode())
    text.vocabulary.save(directory / VOCABULARY_FILE)


def _composing_tokenizer(text: TextSettings) -> dict[str, Any]:
    """Returns tokenizer.json for text in NFC, which tokenizer_config.json has no word for.

    Its steps, which Hugging Face's `tokenizers` runs, are `text.tokenizer`'s: BERT's cleaning, NFC,
    BERT's splitting, long words cut, WordPiece.
    """
    normalization, vocabulary = text.normalization, text.vocabulary
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [
            {"id": vocabulary.ids[token], "content": token, "single_word": False, "lstrip": False,
             "rstrip": False, "normalized": False, "special": True} for token in SPECIAL_TOKENS],
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
             "strip_accents": normalization.strip_accents, "lowercase": normalization.lower_case},
            {"type": "NFC"}]},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "BertPreTokenizer"},
            {"type": "Split", "pattern": {"Regex": LONG_WORD_CUT}, "behavior": "Isolated",
             "invert": False}]},
        "post_processor": _post_processor(vocabulary),
        "decoder": {"type": "WordPiece", "prefix": CONTINUATION, "cleanup": False},
        "model": {"type": "WordPiece", "unk_token": UNK, "continuing_subword_prefix": CONTINUATION,
                  "max_input_chars_per_word": MAX_WORD_CHARACTERS, "vocab": vocabulary.ids}}


def _post_processor(vocabulary: Vocabulary) -> dict[str, Any]:
    """Returns [CLS] text [SEP] and [CLS] text [SEP] text [SEP], the second text of segment 1."""
    def special(token: str, segment: int = 0) -> dict[str, Any]:
        return {"SpecialToken": {"id": token, "type_id": segment}}

    first, second = ({"Sequence": {"id": name, "type_id": segment}}
                     for segment, name in enumerate("AB"))
    single = [special(CLS), first, special(SEP)]
    return {"type": "TemplateProcessing", "single": single,
            "pair": [*single, second, special(SEP, 1)],
            "special_tokens": {token: {"id": token, "ids": [vocabulary.ids[token]],
                                       "tokens": [token]} for token in (CLS, SEP)}}
