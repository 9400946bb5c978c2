r"""Compares exported models with Hugging Face: latency of one text, throughput of batches.

    python -m benchmarks.serving --data_dir=glue --vocab_file=vocab.txt

The model is ELECTRA-Small with two classes and new weights, as `electra-export`,
`electra-export-onnx` and `electra-export-tflite` write it. int8 is dynamic quantization. The
command prints a table per case and writes serving.md and serving.json. It takes about 15 minutes on
two cores; stop other programs first. benchmarks/README.md describes the measurement.
"""

import pathlib
import tempfile
from collections.abc import Sequence

import numpy as np
from absl import flags

from benchmarks.harness import command, tables
from benchmarks.harness.turns import BenchmarkCase, Measurement, system
from benchmarks.serving.answers import BATCHES, MAX_LENGTH
from electra_tf.platform.errors import UserError

SENTENCES = "sst2"
TOLERANCE = 1e-3
"""Largest difference of a probability in float32."""
SYSTEMS = (
    # With frozen weights, oneDNN keeps packed copies; docs/how_to/serving.md recommends this.
    *(system(f"ours-{precision}", "serving.ours", precision=precision,
             variables={"TF_ONEDNN_ASSUME_FROZEN_WEIGHTS": "1"})
      for precision in ("bfloat16", "float32")),
    *(system(f"{name}-{precision}", "serving.ours", runtime=name, precision=precision)
      for name, precision in (("onnx", "float32"), ("onnx", "int8"), ("tflite", "int8"))),
    *(system(f"hf-{precision}", "serving.hugging_face", precision=precision)
      for precision in ("bfloat16", "float32", "int8")),
)


def main() -> None:
    """Writes the model, measures all systems, and prints and writes the tables."""
    values = flags.FLAGS
    for case in values.cases:
        if case != SENTENCES and not (case.isdigit() and 3 <= int(case) <= MAX_LENGTH):
            raise UserError(f"--cases takes numbers of tokens from 3 to {MAX_LENGTH}, and "
                            f"{SENTENCES}. Received: {case!r}")
    bench = command.Bench(SYSTEMS)
    from benchmarks.serving import models  # TensorFlow takes seconds to import.
    from electra_tf.tasks import glue
    from electra_tf.text.vocabulary import Vocabulary

    vocabulary = Vocabulary.load(values.vocab_file)
    # Sentences of dev are whole, unlike those for training.
    sentences = [example.texts[0].strip() for example in glue.read_split(
        glue.TASKS["sst2"], pathlib.Path(values.data_dir), "dev")]
    texts = {case: models.texts_of_length(
        sentences, vocabulary, None if case == SENTENCES else int(case), values.texts)
        for case in values.cases}
    with tempfile.TemporaryDirectory() as scratch:
        models.write(pathlib.Path(scratch), vocabulary, size=values.model_size)
        requests = {f"{case}/{batch}": {"case": case, "batch": batch}
                    for case in texts for batch in BATCHES}
        checks = [{"case": case, "batch": 0} for case in texts]
        measured = bench.measure(BenchmarkCase(
            name="serving", turns=requests, warm_up=[*checks, *requests.values()],
            rounds=values.rounds, fields={"directory": scratch, "texts": texts}))
    require_agreement(measured)
    bench.save(
        "serving", f"ELECTRA-{values.model_size.title()}, two classes, strings in and answers out",
        measured, page(measured, values.cases, values.texts), {})


def require_agreement(measured: Sequence[Measurement]) -> None:
    """Raises `UserError` if systems in float32 return different probabilities."""
    float32 = [result for result in measured
               if result.system.settings["precision"] == "float32" and not result.failure]
    answers = [np.array([reply["probabilities"] for reply in result.warm_up if "case" in reply])
               for result in float32]
    for result, probabilities in zip(float32[1:], answers[1:], strict=True):
        difference = np.abs(probabilities - answers[0]).max()
        if not difference <= TOLERANCE:
            raise UserError(f"{result.label} and {float32[0].label} should return equal "
                            f"probabilities, but they differ by {difference:.2g}.")


def page(measured: Sequence[Measurement], cases: Sequence[str], texts: int) -> list[str]:
    """Returns a table per case as Markdown."""
    def latency(case: str, percent: float) -> tables.Numbers:
        # The milliseconds within which `percent` % of the calls end.
        return lambda result: [1e3 * np.percentile(calls, percent, method="inverted_cdf")
                               for calls in result.values(f"{case}/1", "calls")]

    lines = []
    for case in cases:
        title = f"{case} tokens" if case.isdigit() else "sentences of SST-2 in the file's order"
        lines += [f"## {texts} texts, {title}", "", *tables.table(measured, [
            *tables.compared(measured, "1 text: p50, ms", latency(case, 50), ",.2f",
                             less_is_better=True),
            *tables.compared(measured, "p99, ms", latency(case, 99), ",.2f", less_is_better=True),
            *tables.compared(measured, "32 texts: examples/s", lambda result, case=case: [
                texts / sum(calls) for calls in result.values(f"{case}/32", "calls")])]), ""]
    return lines


if __name__ == "__main__":
    flags.DEFINE_string("data_dir", None, "Directory of GLUE, with SST-2/dev.tsv.", required=True)
    flags.DEFINE_string("vocab_file", None, "Vocabulary file of uncased BERT.", required=True)
    flags.DEFINE_string("model_size", "small", "Model size: tiny, small, base or large.")
    flags.DEFINE_list("cases", ["16", "64", "128", SENTENCES],
                      f"Cases to measure: tokens per text, or {SENTENCES} for its sentences.")
    flags.DEFINE_integer("texts", 256, "Texts per turn.", lower_bound=1)
    command.run(main, __doc__, ["data_dir", "vocab_file", "model_size", "cases", "texts"], SYSTEMS,
                rounds=5)
