"""Changes files of Hugging Face's directories, and writes tf_model.h5 as transformers did."""

import json
import re

import h5py
from safetensors.numpy import load_file, save_file

from electra_tf.modeling.specs import discriminator, generator

_KERAS_NAMES = (  # Kernels keep their names; a model's name leads.
    ("generator_predictions/output_bias", "generator_lm_head/bias"), ("^generator/", "electra/"),
    ("/layer_", "/layer_._"), ("predictions/dense_1", "predictions/dense_prediction"),
    ("/word_embeddings$", "/word_embeddings/weight"),
    ("/((position|token_type)_embeddings)$", r"/\1/embeddings"))

INDEX, SHARDS = "model.safetensors.index.json", [
    f"model-{part:05d}-of-00003.safetensors" for part in (1, 2, 3)]


def change_json(path, **changes):
    """Sets entries of a file; "outer/inner" is an entry of an entry."""
    content = json.loads(path.read_text()) if path.exists() else {}
    for name, value in changes.items():
        *outer, last = name.split("/")
        entries = content
        for key in outer:
            entries = entries[key]
        entries[last] = value
    path.write_text(json.dumps(content))


def change_weights(directory, change):
    """Saves the weights of model.safetensors as `change` returns or leaves them."""
    path = directory / "model.safetensors"
    weights = load_file(path)
    changed = change(weights)
    save_file(changed if isinstance(changed, dict) else weights, path)


def split_weights(directory):
    """Replaces model.safetensors by three parts and their index, as transformers does."""
    weights = load_file(directory / "model.safetensors")
    parts = {name: SHARDS[index % 3] for index, name in enumerate(weights)}
    for shard in SHARDS:
        save_file({name: weights[name] for name in weights if parts[name] == shard},
                  directory / shard)
    (directory / INDEX).write_text(json.dumps(
        {"metadata": {"total_size": 1}, "weight_map": parts}))
    (directory / "model.safetensors").unlink()


def use_keras(pair, checkpoint):
    """Replaces model.safetensors by tf_model.h5 in both directories of a pair."""
    for network, table, model_name in (
            ("discriminator", discriminator(checkpoint.config.discriminator),
             "tf_electra_for_pre_training"),
            ("generator", generator(checkpoint.config), "tf_electra_for_masked_lm_1")):
        paths = {}
        for name in table.weights:
            path = name
            for pattern, replacement in _KERAS_NAMES:
                path = re.sub(pattern, replacement, path)
            paths[f"{model_name}/{path}:0"] = checkpoint.weights[name]
        layers = sorted({path.split("/")[1] for path in paths})
        with h5py.File(pair / network / "tf_model.h5", "w") as file:
            file.attrs["layer_names"] = [layer.encode() for layer in layers]
            for layer in layers:
                group = file.create_group(layer)
                names = [path for path in paths if path.split("/")[1] == layer]
                if layer == "generator_lm_head":  # Keras tracks the embeddings there too.
                    names += [path for path in paths if "/electra/embeddings/" in path]
                group.attrs["weight_names"] = [name.encode() for name in names]
                for name in names:
                    group.create_dataset(name, data=paths[name])
        (pair / network / "model.safetensors").unlink()
