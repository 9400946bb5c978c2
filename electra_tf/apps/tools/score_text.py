r"""Ranks sentences by their likelihood under a pre-trained model, without fine-tuning.

    python -m electra_tf.apps.tools.score_text --model_dir=runs/small --input=sentences.txt
    printf 'The cat sat.\nThe cat sit.\n' | python -m electra_tf.apps.tools.score_text \
        --model_dir=runs/electric --input=-

Prints one line per sentence, the likeliest first: its scores in nats (higher is likelier) and the
sentence, separated by tabs. The generator hides one token after the other, in as many passes as
there are tokens. The discriminator reads the sentence once; Electric's gives energies, which are
made for this (Clark et al., EMNLP 2020). Scores of different models are not comparable. Longer
sentences score lower: --per_token divides by the number of tokens.
"""

from absl import flags

from electra_tf.platform import command_line, storage
from electra_tf.platform.errors import UserError
from electra_tf.tasks.tables import read_lines


def main() -> None:
    """Scores every line and prints them in order."""
    values = flags.FLAGS
    sentences = _sentences(values.input)

    from electra_tf.checkpoints import formats
    from electra_tf.finetuning.pseudo_likelihood import PseudoLikelihood

    judge = PseudoLikelihood(formats.read(storage.path(values.model_dir)))
    network = values.network or judge.best
    if network not in judge.networks:
        raise UserError(f"--network={network}: this model has {' and '.join(judge.networks)}.")
    scores = judge.score(sentences)
    if values.per_token:
        lengths = judge.lengths(sentences)
        scores = {name: found / lengths for name, found in scores.items()}
    print("\t".join([*scores, "sentence"]))
    for line in sorted(range(len(sentences)), key=lambda line: -scores[network][line]):
        print("\t".join([*(f"{found[line]:.3f}" for found in scores.values()), sentences[line]]))


def _sentences(source: str) -> list[str]:
    """Returns the lines that are not empty."""
    path = storage.path("/dev/stdin" if source == "-" else source)
    lines = [line.strip().replace("\t", " ") for _, line in read_lines(path)]
    if not any(lines):
        raise UserError(f"{source} holds no sentences: a line each.")
    return [line for line in lines if line]


def define() -> None:
    """Registers the flags."""
    flags.DEFINE_string("model_dir", None, "A pre-training run, or a converted checkpoint.",
                        required=True)
    flags.DEFINE_string("input", None, "Text file with one sentence per line; - reads standard "
                        "input.", required=True)
    flags.DEFINE_string("network", None, "Network whose score decides the order: generator or "
                        "discriminator. Default: the discriminator for Electric, the generator "
                        "for other objectives.")
    flags.DEFINE_bool("per_token", False, "Divide scores by the number of tokens.")


def run() -> None:
    """Runs the command line."""
    define()
    command_line.run(main, summary=__doc__, groups={
        "Model": ["model_dir", "network"], "Text": ["input", "per_token"]})


if __name__ == "__main__":
    run()
