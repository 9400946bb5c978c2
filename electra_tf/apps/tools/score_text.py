r"""Scores sentences by their likelihood under a pre-trained model, without fine-tuning.

    python -m electra_tf.apps.tools.score_text --model_dir=runs/small --input=sentences.txt
    printf 'The cat sat.\nThe cat sit.\n' | python -m electra_tf.apps.tools.score_text \
        --model_dir=runs/electric --input=-
    python -m electra_tf.apps.tools.score_text --model_dir=runs/small --blimp=tfds

--input prints one line per sentence, the likeliest first: its scores in nats (higher is likelier)
and the sentence, separated by tabs. The generator scores one hidden token at a time and needs one
pass for each. The discriminator reads the sentence once; Electric's returns energies, which it is
trained for (Clark et al., EMNLP 2020). Scores of different models are not comparable. Longer
sentences have lower scores; --per_token divides by the number of tokens.

--blimp counts how often the grammatical sentence of a pair is likelier (Warstadt et al., 2020), for
every paradigm and network; chance is 50 %.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from absl import flags

from electra_tf.platform import command_line, storage
from electra_tf.platform.atomic_file import make_directory, write_json
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.tasks.tables import read_lines, read_rows

TFDS = "tfds"
BLIMP_RESULTS = "blimp_results.json"
Pairs = Mapping[str, Sequence[tuple[str, str]]]
"""Paradigm of BLiMP -> pairs of sentences, the grammatical one first."""


def main() -> None:
    """Reads the sentences and the networks, and prints the scores."""
    values = flags.FLAGS
    if values.blimp:
        _score_pairs(_pairs(values.blimp), values.model_dir, values.output_dir)
    else:
        _rank(_sentences(values.input), values.model_dir, values.network, values.per_token)


def _rank(sentences: Sequence[str], model_dir: str, network: str | None, per_token: bool) -> None:
    """Prints sentences with the scores of every network, in the order of one network's."""
    model = _read_model(model_dir)
    network = network or model.best
    if network not in model.networks:
        raise UserError(f"--network={network}: this model has {' and '.join(model.networks)}.")
    scores = model.score(sentences)
    if per_token:
        lengths = model.lengths(sentences)
        scores = {name: found / lengths for name, found in scores.items()}
    print("\t".join([*scores, "sentence"]))
    for line in sorted(range(len(sentences)), key=lambda line: -scores[network][line]):
        print("\t".join([*(f"{found[line]:.3f}" for found in scores.values()), sentences[line]]))


def _score_pairs(paradigms: Pairs, model_dir: str, output_dir: str | None) -> None:
    """Prints, and saves in a given directory, how often the grammatical sentence is likelier."""
    directory = storage.path(output_dir) if output_dir else None
    if directory is not None:
        make_directory(directory)  # A directory that cannot be made fails before the scoring.
    model = _read_model(model_dir)
    print(f"BLiMP, zero-shot: {model.source}\n\n  {'':<44}{'pairs':>6}"
          + "".join(f"{network:>15}" for network in model.networks), flush=True)
    shares = {}
    for name, pairs in paradigms.items():
        scores = model.score([*(good for good, _ in pairs), *(bad for _, bad in pairs)])
        shares[name] = {network: float(np.mean(values[:len(pairs)] > values[len(pairs):]))
                        for network, values in scores.items()}
        _print_shares(name, len(pairs), shares[name])
    mean = {network: float(np.mean([one[network] for one in shares.values()]))
            for network in model.networks}
    _print_shares(f"mean of {len(paradigms)}", sum(map(len, paradigms.values())), mean)
    if directory is not None:
        write_json(directory / BLIMP_RESULTS, {
            "source": model.source, "mean": mean, "paradigms": shares})
        print(f"\nresults  {directory / BLIMP_RESULTS}")


def _print_shares(name: str, pairs: int, shares: Mapping[str, float]) -> None:
    columns = "".join(f"{100 * one:>13.1f} %" for one in shares.values())
    print(f"  {name:<44}{pairs:>6,}{columns}", flush=True)


def _read_model(model_dir: str):
    from electra_tf.apps.tools.pseudo_likelihood import (
        PseudoLikelihood,  # TensorFlow takes seconds.
    )
    from electra_tf.formats import pretrained

    return PseudoLikelihood(pretrained.read(storage.path(model_dir)))


def _sentences(source: str) -> list[str]:
    """Returns the lines of a file, or of standard input for "-", that are not empty."""
    path = storage.path("/dev/stdin" if source == "-" else source)
    lines = [line.strip().replace("\t", " ") for _, line in read_lines(path)]
    if not any(lines):
        raise UserError(f"{source} holds no sentences; write one per line.")
    return [line for line in lines if line]


def _pairs(source: str) -> Pairs:
    """Returns the paradigms of TensorFlow Datasets, or of a directory's `.jsonl` files by name."""
    if source == TFDS:
        from electra_tf.tasks import tfds_source

        return tfds_source.read_blimp(None)
    return read_pairs(storage.path(source))


def read_pairs(directory: Path) -> Pairs:
    """Returns the pairs of `.jsonl` files by name; `UserError` if missing or malformed."""
    paths = sorted(path for path in directory.iterdir() if path.suffix == ".jsonl"
                   ) if directory.is_dir() else []
    if not paths:
        raise UserError(f"--blimp={directory} holds no .jsonl files; BLiMP has them in its folder "
                        "data/.")
    return {path.stem: [(row.text("sentence_good"), row.text("sentence_bad"))
                        for row in read_rows(path)] for path in paths}


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_string("model_dir", None, "A pre-training run, or another checkpoint.",
                        required=True)
    flags.DEFINE_string("input", None, "Text file with one sentence per line; - reads standard "
                        "input.")
    flags.DEFINE_string("network", None, "Network whose score decides the order: generator or "
                        "discriminator. Default: the discriminator for Electric, the generator "
                        "for other objectives.")
    flags.DEFINE_bool("per_token", False, "Divide scores by the number of tokens.")
    flags.DEFINE_string("blimp", None, "Directory of BLiMP's .jsonl files, or tfds for TensorFlow "
                        "Datasets' data. Replaces --input.")
    flags.DEFINE_string("output_dir", None, f"Directory for {BLIMP_RESULTS}. Default: the table is "
                        "printed only.")
    flags.mark_flags_as_mutual_exclusive(["input", "blimp"], required=True)


run = command_line.program(main, define, summary=__doc__, groups={
    "Model": ["model_dir"], "Text": ["input", "network", "per_token"],
    "BLiMP": ["blimp", "output_dir"]})

if __name__ == "__main__":
    run()
