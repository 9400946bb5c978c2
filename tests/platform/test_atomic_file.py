"""What died processes left goes; what living ones write stays."""

import os
import subprocess
import sys

from electra_tf.platform import atomic_file


def test_only_what_belongs_to_nobody_is_removed(tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    outside = tmp_path / "outside"
    (outside / "kept").mkdir(parents=True)
    place = tmp_path / "runs [1]"
    (place / f".unfinished-{ended.pid}-2" / "deep").mkdir(parents=True)
    (place / f".unfinished-{ended.pid}-file").write_text("")
    (place / f".unfinished-{ended.pid}-link").symlink_to(outside)
    (place / f".unfinished-{os.getpid()}-1").mkdir()
    stay = [f".unfinished-{os.getppid()}-1", ".unfinished-abc", ".unfinished-12",
            f".unfinished-{'9' * 30}-1", f"{ended.pid}-1"]
    for name in stay:
        (place / name).mkdir()
    atomic_file.remove_abandoned(place)
    assert {path.name for path in place.iterdir()} == set(stay)
    assert (outside / "kept").exists()


def test_a_directory_that_is_not_there_is_clean(tmp_path):
    atomic_file.remove_abandoned(tmp_path / "none")
