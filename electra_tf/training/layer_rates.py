"""A learning rate per layer: the further from the output, the lower (ELECTRA, appendix B)."""

import re
from collections.abc import Iterable

_LAYER = re.compile(r"/encoder/layer_(\d+)/")


def rate_factors(paths: Iterable[str], *, num_layers: int, decay: float,
                 skip_first: bool = False) -> list[float]:
    """Returns what to multiply the learning rate of each weight by: decay ** depth.

    The head, and whatever else isn't the encoder's, has depth 0, the last layer 1, the first
    layer `num_layers`, the embeddings one more. Google's code puts everything below the head one
    deeper than its paper says, and the published scores were measured so (its issues 51 and 64).

    Args:
        paths: full names of the weights, for example "electra/encoder/layer_0/output/dense/bias".
        num_layers: of the encoder.
        decay: in (0, 1]; 1 gives every weight the whole rate.
        skip_first: go one deeper below the head, as Google's code does.

    Raises:
        ValueError: a layer past `num_layers`.
    """
    return [decay ** _depth(path, num_layers, skip_first) for path in paths]


def _depth(path: str, num_layers: int, skip_first: bool) -> int:
    if not path.startswith("electra/"):
        return 0
    match = _LAYER.search(path)
    depth = num_layers - int(match.group(1)) if match else num_layers + 1
    if depth < 1:
        raise ValueError(f"{path} is beyond the encoder's {num_layers} layers")
    return depth + skip_first
