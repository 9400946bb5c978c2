"""Commands that convert, export and draw: their files and their errors."""

import re

import pytest
from matplotlib.image import imread

from electra_tf.apps.tools import convert_checkpoint, export_model, plot_curves
from electra_tf.formats import pretrained
from electra_tf.tasks.task import Kind
from tests.support import command_flags, tiny_networks
from tests.support.refusals import refused


def test_conversion_to_a_run_and_back_keeps_every_file(checkpoint, pair, tmp_path, capsys):
    run, copy = tmp_path / "new" / "run", tmp_path / "new" / "copy"
    command_flags.run(convert_checkpoint, f"--from={pair}", f"--to={run}", "--to_format=run")
    command_flags.run(convert_checkpoint, f"--from={run}", f"--to={copy}",
                      "--to_format=hugging_face")
    assert capsys.readouterr().out.startswith(f"{len(checkpoint.weights)} weights, ")
    card = (copy / "README.md").read_text()
    assert f'ElectraForPreTraining.from_pretrained("{copy / "discriminator"}")' in card
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["copy", "run"]
    for network in ("discriminator", "generator"):
        for file in ("model.safetensors", "config.json", "tokenizer_config.json", "vocab.txt"):
            assert (pair / network / file).read_bytes() == (copy / network / file).read_bytes()


@pytest.mark.slow
def test_a_fine_tuned_run_is_exported_for_tensorflow_lite(checkpoint, tmp_path, capsys):
    tagger = tiny_networks.finetuned(checkpoint, Kind.TAGGING, ("B-X", "I-X", "O"), {"dense": 3})
    pretrained.write(tagger, tmp_path / "tagger", pretrained.Format.RUN)
    command_flags.run(export_model, f"--model_dir={tmp_path / 'tagger'}", "--format=tflite",
                      f"--output={tmp_path / 'tags.tflite'}")
    assert capsys.readouterr().out.startswith(f"exported {tmp_path / 'tags.tflite'}: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tagger", "tags.tflite"]


def test_a_fine_tuned_run_is_exported_for_onnx_runtime(checkpoint, tmp_path, capsys, monkeypatch):
    pytest.importorskip("tokenizers", reason="The extra `onnx` is not installed.")
    tagger = tiny_networks.finetuned(checkpoint, Kind.TAGGING, ("B-X", "I-X", "O"), {"dense": 3})
    pretrained.write(tagger, tmp_path / "tagger", pretrained.Format.RUN)
    command_flags.run(export_model, f"--model_dir={tmp_path / 'tagger'}", "--format=onnx",
                      f"--output={tmp_path / 'onnx'}")
    assert re.search(r"\nnone: within \S+ of the trained network\n", capsys.readouterr().out)
    assert sorted(path.name for path in (tmp_path / "onnx").iterdir()) == [
        "README.md", "assets.extra", "config.json", "model.onnx", "tokenizer.json",
        "tokenizer_config.json", "vocab.txt"]
    [program] = re.findall(r"(?ms)^```python\n(.*?)^```",
                           (tmp_path / "onnx" / "README.md").read_text())
    monkeypatch.chdir(tmp_path)
    exec(program)
    assert "logits" in capsys.readouterr().out


def test_refused_commands_write_nothing(pair, run, tmp_path):
    (tmp_path / "file").touch()
    target = tmp_path / "new" / "run"
    for program, arguments, words in (
            (convert_checkpoint, [f"--from={tmp_path}", f"--to={target}"], "holds no checkpoint"),
            (convert_checkpoint, [f"--from={pair}", f"--to={pair}"], "exists already"),
            *((convert_checkpoint, [f"--from={source}", f"--to={target}", flag],
               f"says itself what {flag.split('=')[0]} says for a checkpoint of Google")
              for source in (pair, run) for flag in (
                  "--lower_case=false", "--num_heads=2", f"--vocab_file={run / 'vocab.txt'}")),
            (convert_checkpoint, [f"--from={pair}", f"--to={tmp_path / 'file' / 'run'}"],
             "cannot write"),
            *((export_model, [f"--format={name}", *arguments], words)
              for name in ("onnx", "tflite") for arguments, words in (
                  ([f"--model_dir={run}", f"--output={run}"], "exists already"),
                  ([f"--model_dir={tmp_path}", f"--output={tmp_path / 'x'}"],
                   "holds no checkpoint|is not installed"))),
            *((export_model, [f"--model_dir={run}", f"--output={tmp_path / 'x'}", *choices], words)
              for choices, words in (
                  (["--format=onnx", "--quantization=float16"], "float16 is for --format=tflite"),
                  (["--format=onnx", "--sequence_length=8"], "no effect with --format=onnx"),
                  (["--format=tflite", "--serving_precision=bfloat16"], "give another --format"),
                  (["--quantization=none"], "no effect with --format=saved_model")))):
        with refused(words):
            command_flags.run(program, *arguments, *(
                ["--to_format=run"] if program is convert_checkpoint else []))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "pair"]


def test_curves_of_one_run_and_of_several_are_drawn(tmp_path, capsys):
    run = tmp_path / "run"
    run.mkdir()
    (run / "metrics.jsonl").write_text('{"kind": "train", "step": 1, "loss": 45.0}\n')
    command_flags.run(plot_curves, f"--model_dir={run}")
    command_flags.run(plot_curves, f"--model_dir={run},{run}/../run",
                      f"--output={tmp_path}/both.png")
    assert capsys.readouterr().out == f"wrote {run}/loss_curves.png\nwrote {tmp_path}/both.png\n"
    assert imread(tmp_path / "both.png").shape[:2] == (403, 598)
    with refused(f"{tmp_path}/metrics.jsonl does not exist; train first"):
        command_flags.run(plot_curves, f"--model_dir={tmp_path}")
