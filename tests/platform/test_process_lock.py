"""The lock of a directory, also against processes of its own."""

import subprocess
import sys

import pytest

from electra_tf.platform.atomic_file import only_process
from electra_tf.platform.errors import UserError

HOLDER = """
import sys, time
from pathlib import Path
from electra_tf.platform.atomic_file import only_process
with only_process(Path(sys.argv[1]), "busy"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_holder_is_refused_and_a_later_one_is_not(tmp_path):
    with only_process(tmp_path, "busy."):
        with pytest.raises(UserError, match="^busy.$"), only_process(tmp_path, "busy."):
            pass
        with pytest.raises(UserError), only_process(tmp_path, "busy."):
            pass  # The one refused has not taken the lock away.
    assert list(tmp_path.iterdir()) == []
    with only_process(tmp_path, "busy."):
        pass


def test_the_lock_of_a_killed_process_is_free(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)],
                               stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    with pytest.raises(UserError, match="busy"), only_process(tmp_path, "busy"):
        pass
    process.kill()
    process.communicate()
    with only_process(tmp_path, "busy"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(UserError, match="cannot write .*/none: "), only_process(
            tmp_path / "none", "busy"):
        pass
