"""Worker in the peers' environment: `python -m tests.parity.pytorch_outputs DIRECTORY`.

It reads every Hugging Face network below the directory, and its texts.json. There it writes
outputs.npz (hidden states and logits of `seeded.batch()`, on the CPU), report.json (what loading
said, and token ids of the texts) and saved/ (every network as transformers writes it).
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
import transformers

from tests.support import seeded

LOGITS = ("logits", "start_logits", "end_logits")


def compute(root: Path) -> None:
    """Writes the three results; a network's name is its path below the root."""
    batch = {name: torch.from_numpy(value) for name, value in seeded.batch().items()}
    texts = json.loads((root / "texts.json").read_text(encoding="utf-8"))
    arrays, report = {}, {}
    for directory in sorted(path.parent for path in root.rglob("config.json")):
        name = str(directory.relative_to(root))
        outputs, report[name] = _run(directory, batch, root / "saved" / name)
        arrays |= {f"{name}|{key}": value for key, value in outputs.items()}
        source, within = _source(directory)
        tokenizer = transformers.AutoTokenizer.from_pretrained(source, **within)
        tokenizer.save_pretrained(root / "saved" / name)
        report[name]["ids"] = tokenizer(texts)["input_ids"]
    np.savez(root / "outputs.npz", **arrays)
    (root / "report.json").write_text(json.dumps(report))


def _run(directory: Path, batch: dict[str, torch.Tensor], saved: Path) -> tuple[dict, dict]:
    config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    kind = getattr(transformers, config["architectures"][0])
    source, within = _source(directory)
    model, loading = kind.from_pretrained(source, **within, output_loading_info=True)
    encoder, encoders_loading = transformers.AutoModel.from_pretrained(
        source, **within, output_loading_info=True)
    model.save_pretrained(saved)
    with torch.inference_mode():
        outputs = model.eval()(**batch, output_hidden_states=True)
        last = encoder.eval()(**batch).last_hidden_state
    arrays = {f"hidden_{number}": value.numpy()
              for number, value in enumerate(outputs.hidden_states)}
    arrays |= {name: outputs[name].numpy() for name in LOGITS if name in outputs}
    return arrays | {"last_hidden_of_auto_model": last.numpy()}, {
        "model": _listed(loading), "auto_model": _listed(encoders_loading)}


def _source(directory: Path) -> tuple[Path, dict[str, str]]:
    """Returns what users give to load a network: a generator is a subfolder of its pair."""
    if directory.name == "generator":
        return directory.parent, {"subfolder": directory.name}
    return directory, {}


def _listed(loading: dict) -> dict[str, list[str]]:
    return {name: sorted(map(str, keys)) for name, keys in loading.items()}


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    compute(Path(sys.argv[1]))
