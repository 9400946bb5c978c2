"""The lock of a directory, also against processes of its own."""

import subprocess
import sys

import pytest

from electra_tf.core.atomic_file import lock_directory, remove_unfinished
from electra_tf.core.errors import UserError

HOLDER = """
import sys, time
from pathlib import Path
from electra_tf.core.atomic_file import lock_directory
with lock_directory(Path(sys.argv[1]), "busy"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_holder_is_refused_and_a_killed_ones_lock_is_free(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)],
                               stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    for _ in range(2):  # The one refused has not taken the lock away.
        with pytest.raises(UserError, match="^busy.$"), lock_directory(tmp_path, "busy."):
            pass
    process.kill()
    process.communicate()
    with lock_directory(tmp_path, "busy"), pytest.raises(UserError):
        with lock_directory(tmp_path, "busy"):
            pass
    assert list(tmp_path.iterdir()) == []


def test_files_that_killed_processes_left_are_removed_but_no_exports_directory(tmp_path):
    for name in (".unfinished-ab-1", "1"):
        (tmp_path / name).mkdir()
    for name in (".unfinished-ef-results.json", "results.json", ".lock"):
        (tmp_path / name).touch()
    remove_unfinished(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        ".unfinished-ab-1", "1", "results.json", ".lock"}
    remove_unfinished(tmp_path / "nowhere")
