"""Writes what PyTorch and transformers compute, for machines that have neither.

    PEERS_PYTHON=.venv-peers/bin/python python -m tests.parity.write_pytorch_golden

Logits are of ELECTRA's networks in `seeded_directories`. Hidden states are of five networks: the
others have the discriminator's encoder. AutoTokenizer reads the texts of auto_tokenizer_ids.json,
plain and nasty lines, with directories that our converter wrote.
Made with PyTorch 2.13.0 and transformers 5.23.0.
"""

import json
import string
import tempfile
from pathlib import Path

import numpy as np

from electra_tf.formats import pretrained
from electra_tf.text.normalization import Normalization
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.parity import seeded_directories
from tests.support import peers, tiny_networks
from tests.text.reference import vocabulary_of

GOLDEN = Path(__file__).parent / "golden"
OUTPUTS, IDS = GOLDEN / "pytorch_outputs.npz", GOLDEN / "auto_tokenizer_ids.json"
TEXTS = json.loads(IDS.read_text(encoding="utf-8"))["texts"]
DIFFERENT = {"a special token that is typed is one": "The capital is [MASK] .",
             "an unassigned character is kept": "a\uffffb",
             "punctuation newer than its tables is a letter": "a\u061db"}
"""Difference of transformers' tokenizer from Google's code and ours -> a text that shows it."""
MODES = {"uncased": (True, True), "cased": (False, False), "keep_accents": (True, False),
         "cased_without_accents": (False, True)}  # Lower case, strip accents.


def vocabulary(scratch: Path) -> Vocabulary:
    """Returns most pieces of the sentences, and all letters, so that few words are unknown."""
    letters = f"{string.ascii_letters}[]σς"
    pieces = vocabulary_of(TEXTS, scratch).tokens[len(SPECIAL_TOKENS):]
    more = [*letters, *(f"##{letter}" for letter in letters), "mask", "MASK"]
    return Vocabulary((*SPECIAL_TOKENS, *sorted({*pieces, *more})))


def write_text_directories(words: Vocabulary, directory: Path) -> None:
    """Writes a discriminator for each way to read text."""
    for mode, (lower_case, strip_accents) in MODES.items():
        checkpoint = tiny_networks.pretrained(
            words, normalization=Normalization.of(lower_case, strip_accents))
        pretrained.write(checkpoint, directory / mode, pretrained.Format.HUGGING_FACE)


def main() -> None:
    """Writes both files anew."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "root"
        names = seeded_directories.write(root)
        words = vocabulary(Path(scratch))
        write_text_directories(words, root / "text")
        outputs = peers.run(root, TEXTS)
    np.savez_compressed(OUTPUTS, **{name: value for name, value in outputs.arrays.items()
                                    if _is_kept(*name.split("|"), names)})
    ids = {mode: outputs.report[f"text/{mode}/discriminator"]["ids"] for mode in MODES}
    IDS.write_text("\n".join([
        "{", f'"vocabulary": {json.dumps(words.tokens)},', f'"texts": {json.dumps(TEXTS)},',
        ",\n".join(f'"{mode}": {json.dumps(rows)}' for mode, rows in ids.items()), "}\n"]))


def _is_kept(network: str, array: str, names: list[str]) -> bool:
    if array.startswith("hidden"):
        return network in ("discriminator", "generator", "bert", "bert_mlm", "roformer_mlm")
    return network in names and not network.startswith("bert") and array.endswith("logits")


if __name__ == "__main__":
    main()
