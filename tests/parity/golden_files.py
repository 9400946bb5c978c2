"""Numbers that Google's ELECTRA code produced on tiny models, and how to load them."""

from pathlib import Path

import numpy as np

from electra_tf.config.model import ModelConfig, Tying

GOLDEN = Path(__file__).parent / "golden"
VARIANTS = {
    "electra": (3, Tying.ALL_EMBEDDINGS),
    "electra_tied_generator": (1, Tying.EVERYTHING),
    "electra_untied_embeddings": (1, Tying.NONE),
    "mlm": (2, Tying.ALL_EMBEDDINGS),
}
ELECTRIC = {"electric": (2, Tying.ALL_EMBEDDINGS)}


def load(name: str) -> dict[str, np.ndarray]:
    with np.load(GOLDEN / f"{name}.npz") as arrays:
        return {key: arrays[key] for key in arrays.files}


def model_config(variant: str) -> ModelConfig:
    num_layers, tying = (VARIANTS | ELECTRIC)[variant]
    return ModelConfig(
        vocab_size=500, embedding_size=48, hidden_size=64, num_layers=num_layers, num_heads=4,
        intermediate_size=256, max_position_embeddings=64, generator_width=0.5, tying=tying)


def load_weights(model, variant: str) -> None:
    """Sets every weight from the golden file; both sides must have the same names."""
    weights = load(f"{variant}_weights")
    variables = {variable.name.split(":")[0]: variable for variable in model.trainable_variables}
    assert variables.keys() == weights.keys()
    for name, variable in variables.items():
        variable.assign(weights[name])
