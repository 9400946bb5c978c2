"""Cores and memory on Linux, and as macOS tells them."""

import os
import resource
import sys
import types

from electra_tf.core import machine


def test_cores_and_memory_are_those_of_the_system(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {2, 5, 7}, raising=False)
    assert machine.usable_cores() == 3
    monkeypatch.setattr(resource, "getrusage", lambda who: types.SimpleNamespace(ru_maxrss=2))
    for system, expected in (("linux", 2048), ("darwin", 2)):
        monkeypatch.setattr(sys, "platform", system)
        assert machine.peak_memory_bytes() == expected
