"""The command converts and says what; a mistake is one line, status 1, and writes nothing."""


from electra_tf.apps.tools import convert_checkpoint
from tests.support import command_flags
from tests.support.refusals import refused


def test_it_converts_and_says_what(networks, pair, tmp_path, capsys):
    run, theirs = tmp_path / "new" / "run", tmp_path / "new" / "again"
    command_flags.run(convert_checkpoint, f"--from={pair}", f"--to={run}", "--to_format=run")
    command_flags.run(convert_checkpoint, f"--from={run}", f"--to={theirs}",
                      "--to_format=hugging_face")
    assert capsys.readouterr().out.startswith(f"{len(networks.weights)} weights, ")
    card = (theirs / "README.md").read_text()
    assert f'ElectraForPreTraining.from_pretrained("{theirs / "discriminator"}")' in card
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["again", "run"]
    for network in ("discriminator", "generator"):
        for file in ("model.safetensors", "config.json", "tokenizer_config.json", "vocab.txt"):
            assert (pair / network / file).read_bytes() == (theirs / network / file).read_bytes()


def test_mistaken_flags_are_one_line_and_write_nothing(pair, tmp_path):
    target = tmp_path / "new" / "run"
    (tmp_path / "file").touch()
    for arguments, words in (
            (["--to_format=run", f"--from={tmp_path}"], "holds no checkpoint"),
            (["--to_format=run", f"--to={pair}"], f"--to={pair} exists already"),
            (["--to_format=run", f"--to={tmp_path / 'file' / 'run'}"], "cannot write")):
        with refused(words):
            command_flags.run(
                convert_checkpoint, f"--from={pair}", f"--to={target}", *arguments)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "pair"]
