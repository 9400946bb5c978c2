"""The command converts and says what; a mistake is one line, status 1, and writes nothing."""

import pytest

from electra_tf.apps.tools import convert_checkpoint
from electra_tf.export import conversion
from electra_tf.export.conversion import Format
from electra_tf.platform.errors import UserError
from tests import command_flags


@pytest.fixture(autouse=True)
def program_flags():
    with command_flags.defined(convert_checkpoint.define):
        yield


@pytest.fixture
def pair(networks, tmp_path):
    """A directory of Hugging Face's with two networks."""
    conversion.write(networks, tmp_path / "in" / "pair", Format.HUGGING_FACE)
    return tmp_path / "in" / "pair"


def call(*arguments):
    command_flags.call(convert_checkpoint.main, *map(str, arguments))


def test_it_converts_and_says_what(networks, pair, tmp_path, capsys):
    call(f"--from={pair}", f"--to={tmp_path / 'new' / 'run'}", "--to_format=run")
    call(f"--from={tmp_path / 'new' / 'run'}", f"--to={tmp_path / 'new' / 'again'}",
         "--to_format=hugging_face")
    assert capsys.readouterr().out.startswith(f"{len(networks.weights)} weights, ")
    theirs = tmp_path / "new" / "again"
    card = (theirs / "README.md").read_text()
    assert f'ElectraForPreTraining.from_pretrained("{theirs / "discriminator"}")' in card
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["again", "run"]
    for network in ("discriminator", "generator"):
        for file in ("model.safetensors", "config.json", "tokenizer_config.json", "vocab.txt"):
            assert (pair / network / file).read_bytes() == (
                tmp_path / "new" / "again" / network / file).read_bytes()


def test_mistaken_flags_are_one_line_and_write_nothing(pair, tmp_path):
    target = tmp_path / "new" / "run"
    (tmp_path / "file").touch()
    for arguments, words in (
            (["--to_format=run", f"--from={tmp_path}"], "holds no checkpoint"),
            (["--to_format=run", f"--to={pair}"], f"--to={pair} exists already"),
            (["--to_format=run", f"--to={tmp_path / 'file' / 'run'}"], "cannot write")):
        with pytest.raises(UserError) as error:
            call(f"--from={pair}", f"--to={target}", *arguments)
        assert words in str(error.value) and "\n" not in str(error.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "in"]
