"""Lets systems check their answers, then take turns; a system that fails doesn't stop the others.

In each round every system goes once over the texts of every case, one by one and in batches. The
next round begins with the next system.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Mapping, Sequence

from benchmarks.harness.turns import Asked, failing, rotated
from benchmarks.serving.systems import System
from benchmarks.serving.workload import Workload
from electra_tf.platform.errors import UserError

BATCHES = (1, 32)
TOLERANCE = 1e-3
"""Largest difference of a probability in float32."""


@dataclasses.dataclass(kw_only=True)
class Measurement:
    """What is known of one system."""

    system: System
    label: str
    versions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    probabilities: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    """Case -> every text's probability of the first class."""
    seconds: dict[str, dict[int, list[list[float]]]] = dataclasses.field(default_factory=dict)
    """Case -> batch -> of every round: of every call."""
    failure: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Turns:
    """How systems are measured."""

    tokens: Mapping[str, Sequence[int]]
    """Case -> how many tokens our tokenizer finds in every text."""
    rounds: int
    launch: Callable[[System], Asked]
    workload_of: Callable[[System], Workload]
    say: Callable[[str], None]

    def measure(self, systems: Sequence[System]) -> list[Measurement]:
        """Returns one measurement per system, in their order.

        Raises:
            UserError: two systems don't read the same tokens, or don't answer the same.
        """
        measured = [Measurement(system=system, label=system.title) for system in systems]
        with contextlib.ExitStack() as processes:
            running = []
            for one in measured:
                worker = self.launch(one.system)
                processes.callback(worker.close)
                with failing(one, worker):
                    self._begin(one, worker)
                    running.append((one, worker))
                    self.say(f"ready: {one.label}")
            require_agreement(measured)
            for number in range(self.rounds):
                for case in self.tokens:
                    for one, worker in rotated(running, number):
                        self._time(one, worker, case)
                self.say(f"round {number + 1} of {self.rounds}")
        return measured

    def _begin(self, one: Measurement, worker: Asked) -> None:
        hello = worker.ask(dataclasses.asdict(self.workload_of(one.system)))
        one.label, one.versions = f"{one.system.title}, {hello['label']}", hello["versions"]
        for case, expected in self.tokens.items():
            reply = worker.ask({"case": case, "what": "check"})
            if reply["tokens"] not in (None, list(expected)):
                raise UserError(f"{one.label} reads other tokens in the texts of case {case} than "
                                "electra_tf does; the vocabulary isn't one of lower-case words.")
            one.probabilities[case] = [shares[0] for shares in reply["probabilities"]]
            for batch in BATCHES:  # Shapes that are met for the first time take longer.
                worker.ask({"case": case, "what": "time", "batch": batch})
            one.seconds[case] = {batch: [] for batch in BATCHES}

    def _time(self, one: Measurement, worker: Asked, case: str) -> None:
        if one.failure:
            return
        with failing(one, worker):
            for batch in BATCHES:
                reply = worker.ask({"case": case, "what": "time", "batch": batch})
                one.seconds[case][batch].append(reply["seconds"])


def difference(one: Measurement, other: Measurement) -> float:
    """Returns the largest difference between two systems' probabilities."""
    return max(abs(mine - yours) for case, shares in one.probabilities.items()
               for mine, yours in zip(shares, other.probabilities[case], strict=True))


def require_agreement(measured: Sequence[Measurement]) -> None:
    """Compares the systems that compute in float32.

    Raises:
        UserError: two answer otherwise.
    """
    exact = [one for one in measured if one.system.precision == "float32" and not one.failure]
    for one in exact[1:]:
        if not difference(one, exact[0]) <= TOLERANCE:
            raise UserError(f"{one.label} and {exact[0].label} should answer the same, but "
                            f"probabilities differ by {difference(one, exact[0]):.2g}; nothing "
                            "was measured.")
