"""Range checks that the configuration classes share; each raises one line naming the setting."""

from electra_tf.platform.errors import UserError, shown

LARGEST_COUNT = 2**31 - 1
"""Of steps, examples and seeds: what 32 bits hold."""


def require(condition: bool, setting: str, allowed: str, received: object) -> None:
    """Raises `UserError` unless `condition` holds.

    Args:
        condition: whether the value is acceptable.
        setting: full name, for example "masking.rate".
        allowed: what is acceptable, in words.
        received: the offending value.
    """
    if not condition:
        raise UserError(f"{setting} must be {allowed}. Received: {shown(received)}")


def require_positive(section: str, config: object, *names: str) -> None:
    """Checks that each named field of `config` is greater than zero."""
    for name in names:
        value = getattr(config, name)
        require(value > 0, f"{section}.{name}", "greater than 0", value)


def require_at_most(section: str, config: object, most: float, *names: str) -> None:
    """Checks that no named field of `config` is greater than `most`.

    A bound says what no run can mean: it is far beyond all that was ever trained, and what lies
    below it can be represented, added up and written.
    """
    for name in names:
        value = getattr(config, name)
        require(value <= most, f"{section}.{name}", f"at most {most:,}", value)


def require_probability(section: str, config: object, *names: str) -> None:
    """Checks that each named field of `config` lies in [0, 1)."""
    for name in names:
        value = getattr(config, name)
        require(0.0 <= value < 1.0, f"{section}.{name}", "in [0, 1)", value)
