r"""Scores sentences by their likelihood under a pre-trained model, without fine-tuning.

    python -m electra_tf.apps.tools.score_text --model_dir=runs/small --input=sentences.txt
    printf 'The cat sat.\nThe cat sit.\n' | python -m electra_tf.apps.tools.score_text \
        --model_dir=runs/electric --input=-
    python -m electra_tf.apps.tools.score_text --model_dir=runs/small --blimp=tfds

--input prints one line per sentence, the likeliest first: scores in nats (higher is likelier) and
the sentence, separated by tabs. The generator reads a sentence once per token; the discriminator
reads it once. Runs of objective.name=electra_lm and replace_mlm also have a restorer: their encoder
with the head that predicts tokens, which reads a sentence once per token. Only the discriminator of
Electric is trained to score (Clark et al., EMNLP 2020). Scores of different models are not
comparable. Longer sentences have lower scores; --per_token divides by the number of tokens. --blimp
counts how often the grammatical sentence of a pair is likelier (Warstadt et al., 2020), for every
paradigm and network, or for one --network. Chance is 50 %.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from absl import flags

from electra_tf.core import command_line, storage
from electra_tf.core.atomic_file import make_directory, write_json
from electra_tf.core.errors import UserError, note
from electra_tf.tasks.tables import read_lines, read_rows, suffix_of

BLIMP_RESULTS = "blimp_results.json"


def main() -> None:
    """Reads the sentences and the networks, and prints the scores."""
    # Pairs of BLiMP, or sentences.
    values = flags.FLAGS
    if values.input and values.output_dir:
        raise UserError("--output_dir is for --blimp; redirect the output of --input to a file.")
    if values.blimp == "tfds":
        from electra_tf.tasks import tfds_source

        paradigms = tfds_source.read_blimp(None)
    elif values.blimp:
        directory = storage.path(values.blimp)
        paths = sorted(path for path in directory.glob("*.jsonl*") if suffix_of(path) == ".jsonl")
        if not paths:
            raise UserError(f"--blimp={directory} holds no .jsonl files; BLiMP has them in its "
                            "folder data/.")
        paradigms = {path.name.partition(".jsonl")[0]: [
            (row.text("sentence_good"), row.text("sentence_bad")) for row in read_rows(path)]
            for path in paths}
    elif suffix_of(storage.path(values.input)) in (".tsv", ".csv", ".jsonl", ".json"):
        raise UserError(f"--input={values.input} is a table, whose lines are no sentences; write "
                        "one sentence per line into a .txt.")
    else:
        with storage.input_path(values.input) as path:
            sentences = [line.strip().replace("\t", " ") for _, line in read_lines(path)
                         if line.strip()]
        if not sentences:
            raise UserError(f"--input={values.input} holds no sentences; write one per line.")

    # Scores of every network, sorted by those of one.
    from electra_tf.apps.tools.pseudo_likelihood import PseudoLikelihood
    from electra_tf.formats import pretrained  # TensorFlow takes seconds to import.

    model = PseudoLikelihood(pretrained.read(storage.path(values.model_dir)))
    network = values.network or model.best
    if network not in model.networks:
        raise UserError(f"--network={network}: this model can score with "
                        f"{' and '.join(model.networks)}.")
    if values.blimp:
        _score_pairs(paradigms, model, [network] if values.network else model.networks,
                     values.output_dir, per_token=values.per_token)
        return
    # Lines by the scores of one network, with those of all.
    scores = model.score(sentences, per_token=values.per_token)
    print("\t".join([*scores, "sentence"]))
    for index in np.argsort(-scores[network], kind="stable"):
        print("\t".join([*(f"{sums[index]:.3f}" for sums in scores.values()), sentences[index]]))


def _score_pairs(paradigms: Mapping[str, Sequence[tuple[str, str]]], model: Any,
                 networks: Sequence[str], output_dir: str | None, *, per_token: bool) -> None:
    """Prints, and saves in a given directory, how often the first sentence of a pair is likelier.

    `paradigms` are pairs of sentences by paradigm, the grammatical one first.
    """
    # The table's heading and its form.
    results = output_dir and storage.path(output_dir) / BLIMP_RESULTS
    if results:
        make_directory(results.parent)  # A directory that cannot be made fails before the scoring.

    def print_row(name: str, pairs: int, accuracies: Mapping[str, float]) -> None:
        columns = "".join(f"{100 * accuracy:>13.1f} %" for accuracy in accuracies.values())
        print(f"  {name:<44}{pairs:>6,}{columns}", flush=True)

    print(f"BLiMP, zero-shot: {model.source}\n\n  {'':<44}{'pairs':>6}"
          + "".join(f"{network:>15}" for network in networks), flush=True)

    # Accuracy of every paradigm, and their mean.
    accuracies = {}
    for name, pairs in paradigms.items():
        scores = {network: np.split(values, 2) for network, values in model.score(
            [sentence for column in zip(*pairs, strict=True) for sentence in column],
            networks=networks, per_token=per_token).items()}
        accuracies[name] = {network: float(np.mean(good > bad))
                            for network, (good, bad) in scores.items()}
        print_row(name, len(pairs), accuracies[name])
        if equal := max(int(np.sum(good == bad)) for good, bad in scores.values()):
            note(f"{name}: {equal:,} of {len(pairs):,} pairs have equal scores, and count as wrong")
    mean = {network: float(np.mean([paradigm[network] for paradigm in accuracies.values()]))
            for network in networks}
    print_row(f"mean of {len(paradigms)}", sum(map(len, paradigms.values())), mean)
    if results:
        write_json(results, {"source": model.source, "mean": mean, "paradigms": accuracies})
        print(f"\nresults  {results}")


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_string("model_dir", None, "Directory of a pre-training run, or a checkpoint.",
                        required=True)
    flags.DEFINE_string("input", None, "Text file with one sentence per line; - reads standard "
                        "input.")
    flags.DEFINE_string("network", None, "Network whose scores sort the sentences, or which alone "
                        "scores BLiMP: generator, discriminator or restorer. Default: the "
                        "discriminator for Electric, the generator for other objectives; all for "
                        "BLiMP.")
    flags.DEFINE_bool("per_token", False, "Divide scores by the number of tokens.")
    flags.DEFINE_string("blimp", None, "Directory of BLiMP's .jsonl files, or tfds for TensorFlow "
                        "Datasets, to score instead of --input.")
    flags.DEFINE_string("output_dir", None, f"Directory for {BLIMP_RESULTS}. Default: only print "
                        "the table.")
    flags.mark_flags_as_mutual_exclusive(["input", "blimp"], required=True)


run = functools.partial(command_line.run, main, define, summary=__doc__, groups={
    "Model": ["model_dir"], "Text": ["input", "blimp"],
    "Scores": ["network", "per_token", "output_dir"]})

if __name__ == "__main__":
    run()
