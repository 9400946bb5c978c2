"""Writes tf_model.h5 as transformers' TensorFlow models did."""

import re

import h5py

from electra_tf.modeling.weight_table import discriminator, generator

_LEAVES = {"word_embeddings": "word_embeddings/weight",
           "position_embeddings": "position_embeddings/embeddings",
           "token_type_embeddings": "token_type_embeddings/embeddings"}


def keras_name(name):
    """Path of a weight in a layer's group: kernels keep their place, and the model's name leads."""
    if name == "generator_predictions/output_bias":
        return "generator_lm_head/bias:0"
    name = re.sub("^generator/", "electra/", name).replace("/layer_", "/layer_._")
    name = name.replace("discriminator_predictions/dense_1", "discriminator_predictions/"
                        "dense_prediction")
    head, leaf = name.rsplit("/", 1)
    return f"{head}/{_LEAVES.get(leaf, leaf)}:0"


def write(path, weights, model_name):
    """One group for each of the model's layers, with the order of its weights as an attribute."""
    paths = {f"{model_name}/{keras_name(name)}": value for name, value in weights.items()}
    layers = sorted({path.split("/")[1] for path in paths})
    with h5py.File(path, "w") as file:
        file.attrs["layer_names"] = [layer.encode() for layer in layers]
        for layer in layers:
            group = file.create_group(layer)
            names = [path for path in paths if path.split("/")[1] == layer]
            if layer == "generator_lm_head":  # Keras tracks the embeddings there too.
                names += [path for path in paths if "/electra/embeddings/" in path]
            group.attrs["weight_names"] = [name.encode() for name in names]
            for name in names:
                group.create_dataset(name, data=paths[name])


def replace_safetensors(pair, networks):
    """Writes tf_model.h5 into both directories of a pair and removes model.safetensors."""
    for name, table, model_name in (
            ("discriminator", discriminator(networks.model.discriminator),
             "tf_electra_for_pre_training"),
            ("generator", generator(networks.model), "tf_electra_for_masked_lm_1")):
        write(pair / name / "tf_model.h5",
              {path: networks.weights[path] for path in table.weights}, model_name)
        (pair / name / "model.safetensors").unlink()
