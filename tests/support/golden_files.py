"""Numbers that Google's ELECTRA code produced on tiny models, and how to load them."""

from pathlib import Path

import numpy as np
import tensorflow as tf

from electra_tf.config.model import ModelConfig, Tying
from tests.support import named_arrays

GOLDEN = Path(__file__).parents[1] / "parity" / "golden"
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


def load_part(name: str, kind: str) -> dict[str, np.ndarray]:
    """Returns the arrays that are called "kind|...", by the rest of their names."""
    return {key.removeprefix(f"{kind}|"): array for key, array in load(name).items()
            if key.startswith(f"{kind}|")}


def model_config(variant: str) -> ModelConfig:
    num_layers, tying = (VARIANTS | ELECTRIC)[variant]
    return ModelConfig(
        vocab_size=500, embedding_size=48, hidden_size=64, num_layers=num_layers, num_heads=4,
        intermediate_size=256, max_position_embeddings=64, generator_width=0.5, tying=tying)


def finetuned_config() -> ModelConfig:
    """Returns the sizes of the encoder of "finetune_encoder", without dropout."""
    weights = load_part("finetune_encoder", "weight")
    vocab_size, embedding_size = weights["electra/embeddings/word_embeddings"].shape
    return ModelConfig(
        vocab_size=vocab_size, embedding_size=embedding_size, hidden_size=32, num_layers=2,
        num_heads=4, max_position_embeddings=64, hidden_dropout=0.0, attention_dropout=0.0,
        intermediate_size=weights["electra/encoder/layer_0/intermediate/dense/bias"].size)


def load_weights(model, variant: str) -> None:
    """Sets every weight from the golden file; both sides must have the same names."""
    named_arrays.assign(model.trainable_variables, load(f"{variant}_weights"))


def assert_gradients(variant: str, model, gradients, rtol: float) -> None:
    """Compares gradients, or their norms; `rtol` is relative to an array's largest value."""
    golden = load(f"{variant}_gradients")
    computed = {variable.name.split(":")[0]: tf.convert_to_tensor(gradient).numpy()
             for variable, gradient in zip(model.trainable_variables, gradients, strict=True)}
    assert {name.partition(":")[2] for name in golden} == computed.keys()
    for name, expected in golden.items():
        kind, _, weight = name.partition(":")
        if weight.endswith("key/bias"):  # Zero but for rounding: softmax ignores a shift.
            np.testing.assert_allclose(np.linalg.norm(computed[weight]), 0.0, atol=1e-4)
        elif kind == "gradnorm":
            np.testing.assert_allclose(np.linalg.norm(computed[weight]), expected, rtol=rtol)
        else:
            np.testing.assert_allclose(computed[weight], expected, rtol=0,
                                       atol=rtol * np.abs(expected).max())
