"""The commands of docs/how_to/distillation.md run, and those that can't be followed are refused."""

import functools
import re
import shlex

import pytest

from tests.end_to_end import commands
from tests.end_to_end.commands import HARDWARE
from tests.support import sources, tiny_run
from tests.support.text_files import write

PAGE = sources.ROOT / "docs" / "how_to" / "distillation.md"
QUICK = ("--num_train_epochs=1", "--train_batch_size=8", "--max_seq_length=16", *HARDWARE)
TABLE = "text\tlabel\n" + "word1 word2\tgood\nword3\tbad\n" * 4
refused = functools.partial(commands.refused, commands.finetune)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with the files that the page names."""
    for name, text in (("train.tsv", TABLE), ("dev.tsv", TABLE), ("more.txt", "word2\nword4\n")):
        write(tmp_path / name, text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_the_commands_of_the_page_run(folder, encoder, capsys):
    text = PAGE.read_text(encoding="utf-8").replace("\\\n", "")
    lines = re.findall(r"(?m)^    python run_finetuning.py (.*)", text)
    assert len(lines) == 3
    for line in lines:
        arguments = [re.sub("google/electra-.*", str(encoder), part) for part in shlex.split(line)]
        scratch = tiny_run.FLAGS[:4] if "--init_checkpoint=none" in arguments else []
        commands.finetune(*arguments, *scratch, *QUICK)
    printed = capsys.readouterr().out
    assert "train 8 and 2 unlabelled as 10 rows" in printed
    assert printed.count("\nteacher  runs/teacher, step 1: ") == 2


@pytest.mark.parametrize(("flags", "words"), [
    (["--unlabelled=more.txt"], "--unlabelled needs --teacher"),
    (["--teacher=t", "--distillation_weight=1.5"], r"in \(0, 1\]. Received: 1.5"),
    (["--teacher=t", "--distillation_temperature=0"], r"in \(0, 1000\]. Received: 0")])
def test_flags_that_do_not_fit_are_refused(folder, encoder, flags, words):
    assert re.search(words, refused(
        "--task=classification", "--train=train.tsv", f"--init_checkpoint={encoder}",
        "--model_dir=runs/student", *flags, *QUICK))
    assert not (folder / "runs").exists()
