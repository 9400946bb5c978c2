"""Hugging Face directories of tiny networks, written without a line of the converter.

Names and shapes are those that transformers lists; every weight is a function of its name, so that
networks share what has the same name and shape.
"""

import json
from pathlib import Path

from safetensors.numpy import save_file

from tests.support import seeded

NAMES = json.loads((Path(__file__).parents[1] / "formats" / "golden"
                    / "transformers_5.23_names.json").read_text())
CLASSES = {
    "discriminator": "ElectraForPreTraining", "generator": "ElectraForMaskedLM",
    "classification": "ElectraForSequenceClassification",
    "tagging": "ElectraForTokenClassification",
    "question_answering": "ElectraForQuestionAnswering", "bert": "BertModel",
    "bert_mlm": "BertForMaskedLM", "roformer_mlm": "RoFormerForMaskedLM"}
CONFIG = {
    "model_type": "electra", "vocab_size": seeded.VOCAB_SIZE, "embedding_size": 16,
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64,
    "max_position_embeddings": 32, "type_vocab_size": 2, "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, "pad_token_id": 0}
OWN = {
    "bert": {"model_type": "bert"}, "bert_mlm": {"model_type": "bert"},
    "roformer_mlm": {"model_type": "roformer"},
    "generator": {"hidden_size": 16, "num_attention_heads": 1},
    "tagging": {"id2label": {"0": "B-X", "1": "I-X", "2": "O"},
                "label2id": {"B-X": 0, "I-X": 1, "O": 2}}}
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]",
          *(f"word{index}" for index in range(seeded.VOCAB_SIZE - 5))]


def write(directory: Path) -> list[str]:
    """Writes one directory for each of the classes; returns their names."""
    for network, name in CLASSES.items():
        target = directory / network
        target.mkdir(parents=True)
        save_file({weight: seeded.weight(weight, tuple(shape))
                   for weight, shape in NAMES[network].items()}, target / "model.safetensors")
        (target / "config.json").write_text(json.dumps(
            CONFIG | {"architectures": [name]} | OWN.get(network, {})))
        (target / "tokenizer_config.json").write_text(json.dumps(
            {"tokenizer_class": "ElectraTokenizer", "do_lower_case": True}))
        (target / "vocab.txt").write_text("".join(f"{token}\n" for token in TOKENS))
    return list(CLASSES)
