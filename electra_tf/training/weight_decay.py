"""Which weights decay: every weight belongs to exactly one of two groups, by its name."""

from collections.abc import Iterable

DECAYED = ("kernel", "word_embeddings", "token_type_embeddings", "position_embeddings")
NOT_DECAYED = ("bias", "output_bias", "gamma", "beta")


def decays(path: str) -> bool:
    """Tells whether a weight is subject to weight decay (all but biases and layer norms).

    Args:
        path: full name, for example "electra/embeddings/LayerNorm/gamma".

    Raises:
        ValueError: the last part of the name is in neither group.
    """
    last = path.split(":")[0].rsplit("/", maxsplit=1)[-1]
    if last in DECAYED:
        return True
    if last in NOT_DECAYED:
        return False
    raise ValueError(f"no weight-decay group for the weight {path!r}; known last parts: "
                     f"{', '.join(DECAYED + NOT_DECAYED)}")


def decay_mask(paths: Iterable[str]) -> list[bool]:
    """Returns `decays` of each path, refusing two weights of one name."""
    paths = list(paths)
    repeated = {path for path in paths if paths.count(path) > 1}
    if repeated:
        raise ValueError(f"several weights are named {sorted(repeated)}")
    return [decays(path) for path in paths]
