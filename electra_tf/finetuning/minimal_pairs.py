"""Which sentence of a pair a pre-trained model finds likelier: BLiMP, without fine-tuning."""

from collections.abc import Mapping, Sequence

import numpy as np

from electra_tf.checkpoints.pretrained import Pretrained
from electra_tf.finetuning.pseudo_likelihood import PseudoLikelihood
from electra_tf.platform.atomic_file import make_directory
from electra_tf.platform.storage import Path
from electra_tf.reporting.json_file import write_json
from electra_tf.tasks.minimal_pairs import Paradigm

RESULTS_FILE = "blimp_results.json"

Scores = Mapping[str, Mapping[str, float]]
"""Paradigm -> network -> the share of pairs whose grammatical sentence is likelier."""


def score(networks: Pretrained, paradigms: Sequence[Paradigm], model_dir: Path) -> Scores:
    """Scores a model, prints a table and writes it to a directory; 50 % is chance.

    Args:
        networks: with a generator, a discriminator or both.
        paradigms: of BLiMP.
        model_dir: where blimp_results.json goes, created if need be.

    Raises:
        UserError: no output layer, a sentence that is too long, or nothing can be written.
    """
    make_directory(model_dir)
    judge = PseudoLikelihood(networks)
    print(f"BLiMP, zero-shot: {networks.source}\n\n  {'':<44}{'pairs':>6}"
          + "".join(f"{network:>15}" for network in judge.networks), flush=True)
    scores = {}
    for paradigm in paradigms:
        scores[paradigm.name] = _preferred(judge, paradigm)
        _print_line(paradigm.name, len(paradigm.good), scores[paradigm.name])
    mean = {network: float(np.mean([one[network] for one in scores.values()]))
            for network in judge.networks}
    _print_line(f"mean of {len(paradigms)}", sum(len(one.good) for one in paradigms), mean)
    write_json(model_dir / RESULTS_FILE, {
        "source": networks.source, "mean": mean, "paradigms": scores})
    print(f"\nresults  {model_dir / RESULTS_FILE}")
    return scores


def _preferred(judge: PseudoLikelihood, paradigm: Paradigm) -> dict[str, float]:
    scores = judge.score([*paradigm.good, *paradigm.bad])
    return {network: float(np.mean(values[:len(paradigm.good)] > values[len(paradigm.good):]))
            for network, values in scores.items()}


def _print_line(name: str, pairs: int, shares: Mapping[str, float]) -> None:
    columns = "".join(f"{share:>13.1%} ".replace("%", " %") for share in shares.values())
    print(f"  {name:<44}{pairs:>6,}{columns}".rstrip(), flush=True)
