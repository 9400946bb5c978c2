"""Worker in the peers' environment: `python -m tests.parity.modernbert_outputs FILE`.

It writes what `ModernBertModel` computes for `CASES`, at a few positions of rows of `LENGTHS`.
"""

import json
import sys
import zlib
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

LENGTHS = (5, 127, 300, 1000)
VOCAB_SIZE = 60
_SPECIAL = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
_SHARED = {"vocab_size": VOCAB_SIZE, "max_position_embeddings": 1024, "pad_token_id": 0,
           "cls_token_id": 2, "bos_token_id": 2, "sep_token_id": 3, "eos_token_id": 3}
CASES = {
    "published": _SHARED | {
        "hidden_size": 32, "num_attention_heads": 2, "num_hidden_layers": 4,
        "intermediate_size": 48},
    "narrow_window": _SHARED | {
        "hidden_size": 24, "num_attention_heads": 3, "num_hidden_layers": 5,
        "intermediate_size": 40, "local_attention": 32, "global_attn_every_n_layers": 2},
    "other_angles": _SHARED | {
        "hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 3,
        "intermediate_size": 32, "global_rope_theta": 50_000.0, "local_rope_theta": 1000.0}}
"""Name -> entries of config.json."""


def weight(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Returns the values of a weight by its name in transformers, without a prefix."""
    drawn = np.random.default_rng(zlib.crc32(name.encode())).normal(scale=0.15, size=shape)
    return (drawn + name.endswith("norm.weight")).astype(np.float32)


def batch(length: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns ids int64 [2, L], and a mask that hides a third of the second row."""
    mask = np.arange(length) < np.array([[length], [length - length // 3]])
    return np.random.default_rng(length).integers(5, VOCAB_SIZE, mask.shape) * mask, mask


def kept(hidden: np.ndarray) -> np.ndarray:
    """Returns the vectors [2, 3, H] at the positions that the golden file has."""
    length = hidden.shape[1]
    return hidden[:, [0, length // 4, length - length // 3 - 1]]


def write(name: str, directory: Path) -> None:
    """Writes a directory as transformers does."""
    entries = CASES[name]
    directory.mkdir()
    (directory / "config.json").write_text(json.dumps(entries | {
        "model_type": "modernbert", "architectures": ["ModernBertModel"]}))
    (directory / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
    words = (f"word{index}" for index in range(VOCAB_SIZE - len(_SPECIAL)))
    (directory / "vocab.txt").write_text("\n".join([*_SPECIAL, *words, ""]))
    hidden, wide = entries["hidden_size"], entries["intermediate_size"]
    shapes = {"embeddings.tok_embeddings": (entries["vocab_size"], hidden),
              "embeddings.norm": (hidden,), "final_norm": (hidden,)}
    for index in range(entries["num_hidden_layers"]):
        shapes |= {f"layers.{index}.{part}": shape for part, shape in {
            "attn_norm": (hidden,), "attn.Wqkv": (3 * hidden, hidden), "attn.Wo": (hidden, hidden),
            "mlp_norm": (hidden,), "mlp.Wi": (2 * wide, hidden), "mlp.Wo": (hidden, wide),
        }.items()}
    del shapes["layers.0.attn_norm"]
    save_file({f"{part}.weight": weight(f"{part}.weight", shape)
               for part, shape in shapes.items()}, directory / "model.safetensors")


def main() -> None:
    """Writes the file that is named on the command line."""
    import torch
    from transformers import ModernBertConfig, ModernBertModel

    arrays = {}
    for name, entries in CASES.items():
        model = ModernBertModel(ModernBertConfig(**entries)).eval()
        model.load_state_dict({key: torch.from_numpy(weight(key, tuple(value.shape)))
                               for key, value in model.state_dict().items()})
        for length in LENGTHS:
            ids, mask = map(torch.from_numpy, batch(length))
            with torch.inference_mode():
                hidden = model(input_ids=ids, attention_mask=mask).last_hidden_state
            arrays[f"{name}|{length}"] = kept(hidden.numpy())
    np.savez_compressed(sys.argv[1], **arrays)


if __name__ == "__main__":
    main()
