"""Cores, memory and the processor on Linux, and as macOS tells them."""

import os
import resource
import sys
import types

from electra_tf.platform import machine


def test_cores_and_memory_are_those_of_the_system(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {2, 5, 7}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 10)
    assert machine.usable_cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    assert machine.usable_cores() == 10
    monkeypatch.setattr(resource, "getrusage", lambda who: types.SimpleNamespace(ru_maxrss=2))
    for system, expected in (("linux", 2048), ("darwin", 2)):
        monkeypatch.setattr(sys, "platform", system)
        assert machine.peak_memory_bytes() == expected


def test_a_table_has_the_first_of_equal_names_and_is_empty_where_there_is_none(tmp_path):
    path = tmp_path / "cpuinfo"
    path.write_text("processor\t: 0\nmodel name\t: A: B\n\nprocessor\t: 1\nflags\t:\n")
    assert machine.table(path) == {"processor": "0", "model name": "A: B", "flags": "", "": ""}
    assert machine.table(tmp_path / "meminfo") == {}
