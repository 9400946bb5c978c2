"""Turns rotate, failures become rows, what doesn't fit in memory waits; no real worker runs."""

import pytest

from benchmarks.harness import command, tables
from benchmarks.harness.turns import BenchmarkCase, Measurement, Role, System, Turns, has_room
from benchmarks.harness.worker import WorkerFailed
from electra_tf.platform import machine
from electra_tf.platform.errors import UserError


class FakeWorker:
    """Answers at once; fails at the request of the given number, from 1."""

    def __init__(self, name, log, fails_at=None):
        self.name, self.log, self.fails_at = name, log, fails_at
        self.requests, self.closed = 0, False

    def ask(self, request):
        assert not self.closed
        self.requests += 1
        if self.requests == self.fails_at:
            raise WorkerFailed("ran out of luck")
        if "case" in request:
            return {"label": "float32", "versions": {"fake": "1"}, "accelerator": "card"}
        self.log.append((self.name, request["steps"]))
        return {"seconds": 0.5, "loss": 45.0, "peak_bytes": 1000 * request["steps"]}

    def close(self):
        self.closed = True


def system(name, role=Role.BASELINE, **fields):
    return System(name=name, title=name, role=role, module="fake", **fields)


def measure(systems, *, alone=False, rounds=3, has_room=lambda largest: True, **workers):
    log, launched = [], []

    def launch(which):
        assert not alone or all(worker.closed for worker in launched)  # It has the card alone.
        launched.append(FakeWorker(which.name, log, **workers.get(which.name, {})))
        return launched[-1]

    case = BenchmarkCase(name="toy", fields={"case": "toy"}, turns={"steps": {"steps": 5}},
                         rounds=rounds, warm_up=[{"steps": 1}, {"steps": 2}])
    turns = Turns(case=case, launch=launch, has_room=has_room)
    results = (turns.measure_alone if alone else turns.measure)(systems)
    assert all(worker.closed for worker in launched)
    return {result.system.name: result for result in results}, log


def test_systems_start_one_by_one_and_then_take_turns_that_rotate():
    results, log = measure([system("a", Role.OURS), system("b"), system("c")])
    assert log[:6] == [("a", 1), ("a", 2), ("b", 1), ("b", 2), ("c", 1), ("c", 2)]
    assert [name for name, _ in log[6:]] == list("abc" "bca" "cab")
    assert {steps for _, steps in log[6:]} == {5}
    assert results["b"].values("steps") == [0.5] * 3
    assert results["b"].label == "b float32" and results["b"].peak_bytes == 5000


def test_alone_every_turn_is_a_process_with_its_own_warm_up():
    results, log = measure([system("a", Role.OURS), system("b")], alone=True, rounds=2)
    assert log == [(name, steps) for name in "abba" for steps in (1, 2, 5)]
    assert results["a"].accelerator == "card" and len(results["a"].values("steps")) == 2


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("request_number", [1, 2, 3, 4])
def test_a_dying_worker_becomes_a_row_and_the_others_go_on(request_number, alone):
    results, _ = measure([system("a", Role.OURS), system("b"), system("c")], alone=alone,
                         b={"fails_at": request_number})
    assert [results[name].failure for name in "abc"] == ["", "ran out of luck", ""]
    assert [len(results[name].values("steps")) for name in "abc"] == [3, 0, 3]


def test_what_does_not_fit_is_measured_later_with_ours_and_the_limits():
    room = iter([True, True, False, False])
    results, log = measure(
        [system("p"), system("q"), system("a", Role.OURS), system("r", Role.LIMIT)],
        rounds=2, has_room=lambda largest: next(room))
    # a starts, then r and p fit; q doesn't. Next q comes alone.
    assert [name for name, steps in log if steps == 5] == [*"arp" "rpa", *"arq" "rqa"]
    assert {name: len(result.values("steps")) for name, result in results.items()} == {
        "a": 4, "r": 4, "p": 2, "q": 2}


def test_systems_are_chosen_by_prefixes_of_their_names():
    systems = [system("ours-a"), system("ours-b"), system("hf"), system("limit", always=True)]
    for prefixes, names in {(): ["ours-a", "ours-b", "hf", "limit"],
                            ("ours-b", "h"): ["ours-b", "hf", "limit"]}.items():
        assert [chosen.name for chosen in command.choose(systems, prefixes)] == names
    with pytest.raises(UserError, match="--systems: .* 'limit'. There are: ours-a, ours-b, hf"):
        command.choose(systems, ["limit"])


def test_a_cpu_without_bfloat16_skips_it_unless_a_system_is_named_in_full(monkeypatch, capsys):
    monkeypatch.setattr(command, "cpu_multiplies_bfloat16", lambda: False)
    systems = [system(name, precision="float32" if "32" in name else "bfloat16", **fields)
               for name, fields in (("ours-bfloat16", {}), ("ours-float32", {}),
                                    ("ours-bfloat16-compiled", {}), ("limit", {"always": True}))]

    def names(*chosen):
        return [which.name for which in command.without_slow_bfloat16(systems, chosen)]

    assert names() == ["ours-float32"]
    assert capsys.readouterr().out == (
        "this CPU has no bfloat16 units; left out, as a step takes minutes: ours-bfloat16, "
        "ours-bfloat16-compiled, limit\n")
    assert names("ours-bfloat16") == ["ours-bfloat16", "ours-float32"]
    assert "warning: this CPU has no bfloat16 units; a step takes minutes with ours-bfloat16\n" in (
        capsys.readouterr().out)
    del systems[1]
    with pytest.raises(UserError, match="so ours-bfloat16, .* would take minutes per step"):
        names("ours-b")
    monkeypatch.setattr(command, "cpu_multiplies_bfloat16", lambda: True)
    assert names() == ["ours-bfloat16", "ours-bfloat16-compiled", "limit"]


def test_cells_are_medians_with_ranges_and_ratios_to_the_fastest_baseline():
    def measured(name, seconds, role=Role.BASELINE, failure=""):
        return Measurement(system=system(name, role), label=name, failure=failure,
                           turns={"steps": [{"seconds": value} for value in seconds]})

    systems = [measured("ours", [1.0], Role.OURS), measured("slow", [8.0, 2.0, 4.0]),
               measured("fast", [3.0]), measured("dead", [1.0], failure="x")]

    def seconds(result):
        return result.values("steps")

    assert tables.compared(systems, "s", seconds, ".1f", less_is_better=True) == [
        ["s", "1.0 (1.0 to 1.0)", "4.0 (2.0 to 8.0)", "3.0 (3.0 to 3.0)", "-"],
        ["x fastest baseline", "3.00", "0.75", "1.00", "-"]]
    assert tables.compared(systems, "s", seconds)[1][1:] == ["0.25", "1.00", "0.75", "-"]
    assert tables.table(systems[:1], [["s", "10"]]) == [
        "| system |  s |", "|--------|---:|", "| ours   | 10 |"]
    assert tables.failures(systems) == ["- dead failed: x"]


def test_a_system_starts_if_the_available_memory_is_enough(tmp_path, monkeypatch):
    path = tmp_path / "meminfo"
    monkeypatch.setattr(machine, "MEMORY_INFO", path)
    assert has_room(10 ** 15)
    path.write_text("MemTotal:       8000000 kB\nMemAvailable:    4000000 kB\n")
    assert has_room(2_000_000_000) and not has_room(2_100_000_000)
