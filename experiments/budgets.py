"""How much compute every run of a sweep gets, and the network that it is spent on."""

import dataclasses

from electra_tf.platform.settings import require_one_of


@dataclasses.dataclass(frozen=True, kw_only=True)
class Budget:
    """A scale at which any sweep can be run."""

    name: str
    about: str
    """Description of hardware and time."""
    model_size: str
    recipe: str
    settings: dict[str, str]
    """Settings of every run, by `section.field`."""
    reference_steps: int
    """Training steps of ELECTRA. Their FLOPs are every run's budget: an objective that costs more
    per token reads fewer tokens."""
    seeds: int
    threads: int
    """Cores of a run; as many runs as fit proceed at once. 0: all cores."""


_NARROW = {"model.num_heads": "4", "model.max_position_embeddings": "512",
           "training.train_batch_size": "16"}
BUDGETS = {budget.name: budget for budget in (
    Budget(name="tiny", about="2 layers, 128 wide; 3 minutes of one core a run",
           model_size="tiny", recipe="short", settings=_NARROW,
           reference_steps=2000, seeds=3, threads=1),
    Budget(name="cpu-day", about="4 layers, 256 wide; an hour of one core a run",
           model_size="small", recipe="short",
           settings={"model.num_layers": "4", "training.train_batch_size": "16"},
           reference_steps=14_000, seeds=3, threads=1),
    Budget(name="gpu-day", about="ELECTRA-Small; an hour or two of one GPU a run (not measured)",
           model_size="small", recipe="short", settings={"training.train_batch_size": "128"},
           reference_steps=50_000, seeds=3, threads=0),
    Budget(name="paper", about="ELECTRA-Base, its 766,000 steps of 256 (ELECTRA, table 6)",
           model_size="base", recipe="paper", settings={},
           reference_steps=766_000, seeds=1, threads=0),
)}


def budget_of(name: str) -> Budget:
    """Returns the budget of a name; `UserError` if there is none."""
    require_one_of(BUDGETS, "--budget", name)
    return BUDGETS[name]
