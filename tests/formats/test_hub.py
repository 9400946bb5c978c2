"""Models of a hub are read by name, and every refusal is one line that says what to do."""

import hashlib
import re
import shlex
import subprocess

import huggingface_hub
import pytest
from huggingface_hub import constants

from electra_tf.core import hub, storage
from electra_tf.formats import pretrained
from tests.support import hub_server, tiny_networks
from tests.support.hugging_face_files import INDEX, SHARDS, change_json, split_weights, use_keras
from tests.support.refusals import refused

SMALL = "google/electra-small-discriminator"
GENERATOR = "google/electra-small-generator"


@pytest.fixture(scope="module")
def checkpoint():
    return tiny_networks.pretrained(model__generator_width=1.0)


@pytest.fixture
def server(pair, tmp_path, monkeypatch):
    with hub_server.running(monkeypatch, tmp_path) as server:
        server.models = {SMALL: pair / "discriminator", GENERATOR: pair / "generator"}
        yield server


def read(name):
    return pretrained.read(storage.path(name))


def refusal(name):
    with refused("") as error:
        read(name)
    return str(error.value)


@pytest.mark.parametrize("name", [SMALL, f"hf://{SMALL}", f"hf://{SMALL}@main"])
def test_a_discriminator_comes_with_its_generator(server, checkpoint, name):
    both = read(name)
    tiny_networks.require_equal_weights(both, checkpoint)
    assert (both.source, both.text) == (name, checkpoint.text)
    assert both.config.generator.hidden_size == both.config.discriminator.hidden_size


@pytest.mark.parametrize("options", [{}, {"encoder_only": True}])
def test_a_discriminator_is_read_without_a_generator(server, checkpoint, options):
    if not options:
        del server.models[GENERATOR]
    discriminator = pretrained.read(storage.path(SMALL), **options)
    assert not any(name.startswith(GENERATOR) for name in server.fetched())
    assert discriminator.weights.keys() == {
        name for name in checkpoint.weights if not name.startswith("generator")}


@pytest.mark.parametrize("weights_file", ["model.safetensors", "tf_model.h5"])
def test_one_file_of_weights_is_downloaded_once(server, checkpoint, pair, weights_file):
    if weights_file == "tf_model.h5":
        use_keras(pair, checkpoint)
    for name in ("pytorch_model.bin", "flax_model.msgpack", "README.md"):
        (pair / "discriminator" / name).write_bytes(b"not read")
    tiny_networks.require_equal_weights(read(SMALL), checkpoint)
    expected = sorted(f"{model}/{name}" for model in (SMALL, GENERATOR) for name in (
        "config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt", weights_file))
    assert server.fetched() == expected
    read(SMALL)
    assert server.fetched() == expected


def test_shards_are_downloaded_by_their_index_and_an_adapter_is_refused(server, checkpoint, pair):
    split_weights(pair / "discriminator")
    tiny_networks.require_equal_weights(read(SMALL), checkpoint)
    names = [name.rpartition("/")[2] for name in server.fetched() if name.startswith(SMALL)]
    assert [name for name in names if "safetensors" in name] == [*SHARDS, INDEX]
    for name in ("config.json", INDEX, *SHARDS):
        (pair / "generator" / name).unlink(missing_ok=True)
    (pair / "generator" / "model.safetensors").unlink()
    change_json(pair / "generator" / "adapter_config.json",
                peft_type="LORA", base_model_name_or_path="user/base")
    server.models["user/adapter"] = pair / "generator"
    assert "(LORA) without its base model user/base" in refusal("user/adapter")


def test_the_cache_is_enough_offline(server, checkpoint, monkeypatch):
    read(SMALL)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    huggingface_hub.close_session()
    requests = len(server.requests)
    tiny_networks.require_equal_weights(read(SMALL), checkpoint)
    assert len(server.requests) == requests
    assert "is not a local path and incomplete in the cache" in (message := refusal("user/other"))
    assert "HF_HUB_OFFLINE is set; unset it" in message


def test_a_server_that_cannot_be_reached_is_named(server):
    server.shutdown()
    server.server_close()
    assert f"{server.endpoint} can't be reached" in refusal(SMALL)


def test_a_misspelt_name_or_revision_is_named(server, checkpoint):
    message = refusal("google/electra-smal-discriminator")
    assert f"{server.endpoint}" in message and f"Did you mean '{SMALL}'?" in message
    assert "Did you mean" not in refusal("somebody/else")
    server.revisions.add("v1")
    tiny_networks.require_equal_weights(read(f"hf://{SMALL}@v1"), checkpoint)
    assert f"{SMALL} has no revision 'v2'" in refusal(f"hf://{SMALL}@v2")


@pytest.mark.parametrize("status", [401, 403])
def test_a_gated_model_is_refused_with_what_gives_access(server, status):
    server.gated[SMALL] = status
    assert (f"accept its terms at {server.endpoint}/{SMALL}, then log in with hf auth"
            in refusal(SMALL))


def test_a_download_that_breaks_off_is_resumed_by_the_same_command(server, checkpoint):
    server.cut.add("model.safetensors")
    assert f"the transfer of {SMALL} was interrupted; repeat the command" in refusal(SMALL)
    server.cut.clear()
    tiny_networks.require_equal_weights(read(SMALL), checkpoint)


def test_a_file_with_another_hash_than_the_hubs_is_refused(server, checkpoint):
    server.etags = lambda content: hashlib.sha256(content).hexdigest()
    tiny_networks.require_equal_weights(read(SMALL), checkpoint)
    damaged = next((server.home.parent / "cache").rglob("model.safetensors"))
    damaged.resolve().write_bytes(b"other")
    message = refusal(SMALL)
    assert "isn't the Hub's file: its hash is d9298a10d1b0..., the Hub's " in message
    subprocess.run(shlex.split(message.rpartition("repeat the command: ")[2]), check=True)
    tiny_networks.require_equal_weights(read(SMALL), checkpoint)


def test_another_architecture_is_refused_before_its_weights_are_downloaded(server, pair):
    change_json(pair / "discriminator" / "config.json", model_type="roberta")
    message = refusal(SMALL)
    assert "'model_type'" in message and "'roberta'" in message
    assert not any("safetensors" in name for name in server.fetched())


@pytest.mark.parametrize("name", ["hf://alone", "hf://a/b/c", "hf://a/b@", "hf://a--b/c..d"])
def test_what_is_no_name_is_refused(server, name):
    assert re.search("is not (hf://OWNER/NAME|a valid name)", refusal(name))


def test_local_paths_come_before_names(server, pair):
    for path in ("pair/discriminator", "pair/discrim", "pair", "a/b/c", "/a/b", "a/b@c", "gs://a/b"):
        assert not hub.is_model_name(storage.path(path)), path
    assert hub.is_model_name(storage.path("pair/other"))
