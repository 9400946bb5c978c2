"""Pushed models are read back by name, bit for bit, with a card."""

import pytest
import yaml

from electra_tf.apps.tools import push
from electra_tf.core import storage
from electra_tf.formats import pretrained
from electra_tf.tasks.task import Kind
from tests.support import command_flags, hub_server, tiny_encoder, tiny_networks
from tests.support.refusals import refused


@pytest.fixture
def server(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_TOKEN", "hf_test")
    with hub_server.running(monkeypatch, tmp_path) as hub:
        yield hub


def call(model, name, *options):
    command_flags.run(push, *options, names=[model, name])


def card_of(server, name):
    _, metadata, text = (server.models[name] / "README.md").read_text().split("---\n", 2)
    return yaml.safe_load(metadata), text


def test_a_pushed_run_is_read_by_name_with_its_generator(server, tmp_path, capsys):
    run = tmp_path / "runs" / "mine"
    tiny_encoder.write(run)
    (run / "loss_curves.png").write_bytes(b"a picture")
    (run / "eval_results.json").write_text('{"step": 7, "disc_auc": 0.75, "other": null}')
    call(run, "user/name", f"--data_dir={run / 'records'}")
    output = capsys.readouterr().out
    assert f"uploaded {run}, step 7: {server.endpoint}/user/name" in output
    assert "license  none in the card; --license=mit states one" in output
    pushed, original = pretrained.read(storage.path("user/name")), pretrained.read(run)
    tiny_networks.require_equal_weights(pushed, original)
    assert (pushed.text, pushed.config.tying) == (original.text, original.config.tying)
    encoder = pretrained.read(storage.path("hf://user/name"), encoder_only=True)
    assert not any(name.startswith("generator") for name in encoder.weights)
    metadata, text = card_of(server, "user/name")
    assert metadata == {"library_name": "transformers", "tags": ["electra", "electra-tf"]}
    for words in ("| disc_auc | 0.7500 |", "![Training curves](loss_curves.png)",
                  'ElectraForPreTraining.from_pretrained("user/name")',
                  'electra_tf.load("user/name")', "`model.hidden_size`: 32",
                  "| base model | none: trained from random weights |",
                  "| licence | not stated: see those of the training text and of the base model |"):
        assert words in text
    for name, source in (("loss_curves.png", run), ("manifest.json", run / "records")):
        assert (server.models["user/name"] / name).read_bytes() == (source / name).read_bytes()


def test_the_card_of_a_fine_tuned_model_names_task_and_base(server, checkpoint, tmp_path):
    model = tiny_networks.finetuned(
        checkpoint, Kind.CLASSIFICATION, ("no", "yes"), {"hidden": 32, "dense": 2},
        settings={"task.hidden_layer": True})
    pretrained.write(model, tmp_path / "run", pretrained.Format.RUN)
    (tmp_path / "run" / "eval_results.json").write_text('{"dev": {"accuracy": 0.5, "mcc": null}}')
    call(tmp_path / "run", "user/classifier", "--license=mit")
    tiny_networks.require_equal_weights(pretrained.read(storage.path("user/classifier")), model)
    metadata, text = card_of(server, "user/classifier")
    assert (metadata["license"], metadata["pipeline_tag"]) == ("mit", "text-classification")
    assert "| licence | mit |" in text and "| dev, accuracy | 0.5000 |" in text
    assert "labels: no, yes" in text and "| base model | the tiny networks |" in text
    assert "aggregation_strategy" not in text
    call("user/classifier", "user/again")
    assert card_of(server, "user/again")[0]["base_model"] == "user/classifier"
    model = tiny_networks.finetuned(checkpoint, Kind.TAGGING, ("B-X", "I-X", "O"), {"dense": 3})
    pretrained.write(model, tmp_path / "tagger", pretrained.Format.RUN)
    call(tmp_path / "tagger", "user/tagger")
    assert 'model="user/tagger", aggregation_strategy="first")' in card_of(server, "user/tagger")[1]


def test_unusable_names_tokens_and_records_are_refused(server, tmp_path, monkeypatch):
    run = tmp_path / "run"
    tiny_encoder.write(run)
    tiny_encoder.write(tmp_path / "other", model__max_position_embeddings=33)
    manifest = tmp_path / "other" / "records" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"sha256": "', '"sha256": "0', 1))
    for name, options, words in (
            ("user/name", [f"--data_dir={manifest.parent}"], "not hold the records|is damaged"),
            ("no name", [], "is not a valid name of a model")):
        with refused(words):
            call(run, name, *options)
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    with refused("user/name is gated or needs another token"):
        call(run, "user/name")
    assert "user/name" not in server.models
