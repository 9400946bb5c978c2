r"""Measures what one long text costs every signature: seconds, and memory at its peak.

    python -m benchmarks.serving.text_length --vocab_file=vocab.txt

ELECTRA-Small with new weights, in float32, a process for each signature, which is asked for texts
of growing length. Prints a table. About twenty minutes on two cores, most of them for a
million characters of questions and tags.
"""

import dataclasses
import json
import pathlib
import resource
import subprocess
import sys
import time
from collections.abc import Mapping

import tensorflow as tf
from absl import flags

from electra_tf.checkpoints.pretrained import TextSettings
from electra_tf.config.overrides import override
from electra_tf.config.sizes import pretraining_config
from electra_tf.export import finetuned, servable
from electra_tf.export.signatures import Detector, Served
from electra_tf.modeling.electra import Discriminator, electra_encoder
from electra_tf.modeling.inference import InferenceEncoder
from electra_tf.platform import command_line
from electra_tf.platform.errors import UserError
from electra_tf.tasks.examples import Kind
from electra_tf.tasks.kinds.classification import ClassificationObjective
from electra_tf.tasks.kinds.questions import QuestionObjective
from electra_tf.tasks.kinds.regression import RegressionObjective
from electra_tf.tasks.kinds.tagging import TaggingObjective
from electra_tf.tasks.recipes import recipe
from electra_tf.tasks.task import TaskSpec
from electra_tf.text.rows import RowEncoder
from electra_tf.text.vocabulary import Vocabulary

LENGTHS = (1_000, 10_000, 100_000, 1_000_000)
UNITS = {
    "prose": "The committee, which met in Oslo on Tuesday, approved the new budget. ",
    "letters": "a", "spaces": " ", "punctuation": "(", "Chinese": "世", "marks": "\u0301\u0323"}
"""What a text repeats."""
SIGNATURES = ("detect", "embed", "embed_tokens", *Kind)
_OBJECTIVES = {
    Kind.CLASSIFICATION: ClassificationObjective(num_classes=2),
    Kind.REGRESSION: RegressionObjective(), Kind.TAGGING: TaggingObjective(num_tags=3),
    Kind.QUESTION_ANSWERING: QuestionObjective()}

def main() -> None:
    """Prints a table, or, as a worker, a JSON line for every length."""
    values = flags.FLAGS
    if values.unit not in UNITS or not set(values.signatures) <= set(SIGNATURES):
        raise UserError(f"--unit must be one of {', '.join(UNITS)}, --signatures of "
                        f"{', '.join(SIGNATURES)}.")
    lengths = [int(length) for length in values.lengths]
    if values.worker:
        _measure(values.signatures[0], UNITS[values.unit], lengths)
        return
    print("| signature | " + " | ".join(f"{length:,}" for length in lengths) + " |")
    print("|---" * (1 + len(lengths)) + "|")
    for signature in values.signatures:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.serving.text_length", "--worker",
             f"--signatures={signature}", f"--unit={values.unit}",
             f"--vocab_file={values.vocab_file}", f"--lengths={','.join(values.lengths)}"],
            cwd=pathlib.Path(__file__).parents[2], stdout=subprocess.PIPE, text=True, check=True)
        cells = [json.loads(line) for line in done.stdout.splitlines()]
        print(f"| {signature} | " + " | ".join(
            f"{cell['seconds']:.2f} s, {cell['mb']:,.0f} MB" for cell in cells) + " |", flush=True)


def _measure(name: str, unit: str, lengths: list[int]) -> None:
    served = _served(name, Vocabulary.load(flags.FLAGS.vocab_file))
    signature = served.signatures()[name if isinstance(served, Detector) else "serving_default"]

    def ask(length: int) -> None:
        text = (unit * (length // len(unit) + 1))[:length]
        asked: Mapping[str, str] = {column: text for column in served.columns}
        if served.columns == ("question", "context"):
            asked = {"question": "Who approved the budget?", "context": text}
        signature(**{column: tf.constant([value]) for column, value in asked.items()})

    ask(10)  # Memory is planned.
    for length in lengths:
        begin = time.perf_counter()
        ask(length)
        print(json.dumps({
            "seconds": time.perf_counter() - begin,
            "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}), flush=True)


def _served(name: str, vocabulary: Vocabulary) -> Served:
    model = dataclasses.replace(pretraining_config("small").model, vocab_size=vocabulary.size)
    if name not in set(Kind):
        network = Discriminator(
            electra_encoder(model.discriminator, seed=1, policy="float32"), seed=1,
            policy="float32")
        encoder = InferenceEncoder(model.discriminator, tf.float32, servable.TENSOR_PARALLEL)
        encoder.take(network.encoder)
        return Detector(encoder, network.head, RowEncoder(
            TextSettings(vocabulary=vocabulary), model.max_position_embeddings))
    kind = Kind(name)
    texts = ("first", "second") if kind is Kind.REGRESSION else ("text",)
    labels = {Kind.CLASSIFICATION: ("no", "yes"), Kind.TAGGING: ("B-X", "I-X", "O")}.get(kind, ())
    spec = TaskSpec(name=name, kind=kind, labels=labels, metrics=("f1",), texts=texts)
    config = override(recipe(name, model), {"task.max_seq_length": 512})
    network = _OBJECTIVES[kind].build_model(model, seed=1, policy="float32")
    return finetuned.of_task(network, spec, config.task, TextSettings(vocabulary=vocabulary),
                             None).for_inference(tf.float32)


def _define() -> None:
    flags.DEFINE_string("vocab_file", "", "vocab.txt of the model.")
    flags.DEFINE_string("unit", "prose", f"What texts consist of: {', '.join(UNITS)}.")
    flags.DEFINE_list("signatures", list(SIGNATURES), "Which are measured.")
    flags.DEFINE_list("lengths", [str(length) for length in LENGTHS], "In characters.")
    flags.DEFINE_bool("worker", False, "Measure here, a single signature.")


if __name__ == "__main__":
    _define()
    command_line.run(main, summary=__doc__, groups={
        "What": ("vocab_file", "unit", "signatures", "lengths"), "How": ("worker",)})
