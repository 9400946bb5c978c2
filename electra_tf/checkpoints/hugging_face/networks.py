"""Hugging Face's directories: config.json, weights, vocab.txt, tokenizer_config.json.

It keeps the two networks apart, each with a copy of the embeddings: a pair is a directory with
`discriminator/` and `generator/`. A fine-tuned model is a directory by itself.
"""

import re
from collections.abc import Iterable

import numpy as np

from electra_tf.checkpoints.hugging_face import files
from electra_tf.checkpoints.hugging_face.files import CONFIG_FILE, Config
from electra_tf.checkpoints.hugging_face.weight_files import read_weights, weights_file
from electra_tf.checkpoints.pretrained import Pretrained, UnconvertedHead
from electra_tf.checkpoints.shapes import require_exactly, require_networks, with_generator
from electra_tf.checkpoints.weights import Weights
from electra_tf.modeling.weight_table import discriminator, vocabulary_head, whole_encoder
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path

DISCRIMINATOR, GENERATOR = "discriminator", "generator"
ARCHITECTURES = {DISCRIMINATOR: "ElectraForPreTraining", GENERATOR: "ElectraForMaskedLM"}
FINETUNED = ("ElectraForSequenceClassification", "ElectraForTokenClassification",
             "ElectraForQuestionAnswering")
"""Classes of fine-tuned models whose heads `export/hugging_face_heads.py` converts."""
_RENAMED = {"generator_predictions/output_bias": "generator_lm_head.bias",
            "discriminator_predictions/dense_1/kernel":
                "discriminator_predictions.dense_prediction.weight",
            "discriminator_predictions/dense_1/bias":
                "discriminator_predictions.dense_prediction.bias"}
IGNORED = frozenset({"electra.embeddings.position_ids", "generator_lm_head.weight"})
"""A buffer of old releases, and the tied table, where it is written twice."""


def is_directory_of(path: Path) -> bool:
    """Tells whether a directory holds a network, or a pair of them, in this format."""
    return (path / CONFIG_FILE).exists() or (path / DISCRIMINATOR / CONFIG_FILE).exists()


def read(path: Path, beside: Path | None = None, *, generator: bool = True) -> Pretrained:
    """Returns the networks of a directory: a pair, or a discriminator, with generator/ or alone.

    Args:
        path: of the directory.
        beside: directory of the generator, if it is elsewhere.
        generator: False leaves a generator unread.

    Raises:
        UserError: a file is missing or damaged, another architecture, or not exactly ELECTRA's
            weights; two networks that don't share what ours have to share.
    """
    pair = (path / DISCRIMINATOR / CONFIG_FILE).exists()
    directory = path / DISCRIMINATOR if pair else path
    config = files.read_config(directory)
    if config.architecture in FINETUNED:
        return _read_finetuned(directory, config)
    files.require_architecture(config, directory, ARCHITECTURES[DISCRIMINATOR])
    model = files.model_config(config, directory)
    text = files.read_text(directory, config.vocab_size, config.pad_token_id)
    weights = by_our_names(
        read_weights(directory), discriminator(model.discriminator).weights, directory)
    place = beside or path / GENERATOR
    if generator and (place / CONFIG_FILE).exists():
        own = files.read_config(place)
        files.require_architecture(own, place, ARCHITECTURES[GENERATOR])
        alone = files.model_config(own, place).discriminator
        found = by_our_names(read_weights(place), whole_encoder(alone) | vocabulary_head(
            "generator_predictions", alone), place)
        model, theirs = with_generator(
            files.encoder_sizes(config),
            {name: getattr(alone, name) for name in files.SIZES}, found, weights, str(place))
        weights |= theirs
        other = files.read_text(place, own.vocab_size, own.pad_token_id)
        if other != text:
            raise UserError(f"{path}: {GENERATOR}/ reads text in another way than {DISCRIMINATOR}/ "
                            "does (vocabulary, lower case or accents); they are no pair.")
    require_networks(weights, model, str(path))
    return Pretrained(source=str(path), model=model, text=text, weights=weights)


def _read_finetuned(directory: Path, config: Config) -> Pretrained:
    model = files.model_config(config, directory)
    found, shapes = read_weights(directory), whole_encoder(model.discriminator)
    head = {name: value for name, value in found.items()
            if name not in IGNORED and not name.startswith("electra.")}
    weights = by_our_names(
        {name: value for name, value in found.items() if name not in head}, shapes, directory)
    require_exactly(weights, shapes, str(directory))
    return Pretrained(source=str(directory), model=model, weights=weights,
                      text=files.read_text(directory, model.vocab_size, config.pad_token_id),
                      unconverted_head=UnconvertedHead(config=config, weights=head))


def theirs_of(name: str) -> str:
    """Returns what Hugging Face calls a weight.

    >>> theirs_of("generator/encoder/layer_3/output/dense/kernel")
    'electra.encoder.layer.3.output.dense.weight'
    """
    if name in _RENAMED:
        return _RENAMED[name]
    path = re.sub(r"/layer_(\d+)/", r"/layer/\1/", re.sub("^generator/", "electra/", name))
    path = re.sub("/(kernel|gamma)$", "/weight", re.sub("/beta$", "/bias", path))
    return (f"{path}/weight" if path.endswith("_embeddings") else path).replace("/", ".")


def turned(name: str, value: np.ndarray) -> np.ndarray:
    """Returns a weight, named as ours, in the other form: PyTorch's kernels are [out, in]."""
    return value.T if name.endswith("/kernel") else value


def by_our_names(found: Weights, wanted: Iterable[str],
                 directory: Path) -> dict[str, np.ndarray]:
    """Returns weights by our names, in float32 and our form.

    Args:
        found: by their names.
        wanted: our names.
        directory: where they come from, for errors.

    Raises:
        UserError: names that are missing or left over.
    """
    path, names = weights_file(directory), {theirs_of(name): name for name in wanted}
    unknown = sorted(found.keys() - names.keys() - IGNORED)
    if unknown:
        raise UserError(f"{path} has no place in ELECTRA for {len(unknown)} weights: "
                        f"{', '.join(unknown)}.")
    missing = sorted(names.keys() - found.keys())
    if missing:
        raise UserError(f"{path} lacks {len(missing)} weights: {', '.join(missing)}.")
    return {ours: turned(ours, found[theirs]).astype(np.float32)
            for theirs, ours in names.items()}
