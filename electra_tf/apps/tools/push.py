r"""Uploads a model to the Hugging Face Hub, with a model card.

    python -m electra_tf.apps.tools.push runs/mine user/name
    python -m electra_tf.apps.tools.push runs/mine user/name --data_dir=records --license=mit

RUN is a run's directory or another checkpoint. NAME is the repository, which is created if there is
none. It then holds safetensors, config.json, the tokenizer's files and README.md; a generator has
its files in generator/. Log in first: hf auth login, or set HF_TOKEN. --init_checkpoint=user/name
and electra_tf.load("user/name") load the model again, as transformers does.
"""

import pathlib
import tempfile

from absl import flags

from electra_tf.platform import command_line, storage
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path

GROUPS = {"Upload": ("private", "license", "data_dir")}


def main(model: str, name: str) -> None:
    """Reads, writes Hugging Face's files and the card, uploads."""
    from electra_tf.checkpoints.formats import Format  # TensorFlow takes seconds to import.
    from electra_tf.checkpoints.hugging_face.networks import DISCRIMINATOR, GENERATOR
    from electra_tf.export import card, conversion

    values, source = flags.FLAGS, storage.path(model)
    license = values.license or card.LICENSE
    records = _records(values.data_dir, source) if values.data_dir else ()
    networks = conversion.read(source)
    with tempfile.TemporaryDirectory(prefix="electra-") as scratch:
        folder = pathlib.Path(scratch, "model")
        conversion.write(networks, folder, Format.HUGGING_FACE)
        if networks.task is None:  # The Hub has one model in the root of a repository.
            if (folder / GENERATOR).exists():
                (folder / GENERATOR).rename(folder / DISCRIMINATOR / GENERATOR)
            folder /= DISCRIMINATOR
        card.write(folder, networks, source, title=name, license=license, records=records,
                   transformers=name)
        address = _upload(folder, name, private=values.private)
    print(f"uploaded {networks.source}: {address}\nlicense  {license} (--license changes it)",
          flush=True)


def _records(data_dir: str, run: Path):
    """Returns the directories of a run's records with their manifests."""
    from electra_tf.checkpoints.run_directory import read_identity
    from electra_tf.data.manifest import Records

    found = Records.load(data_dir)
    if found.manifest.fingerprint != read_identity(run).get("dataset"):
        raise UserError(f"--data_dir={data_dir} holds other records than those that {run} was "
                        "trained on; name the right directory, or leave the flag out.")
    return [(found.data_dir, found.manifest)]


def _upload(folder: pathlib.Path, name: str, *, private: bool) -> str:
    """Uploads a directory as one commit of a repository, and returns the repository's address.

    Raises:
        UserError: no valid name, no access, no connection.
    """
    from electra_tf.checkpoints import hub

    with hub.one_line_errors(name, None):
        from huggingface_hub import HfApi, constants, errors

        try:
            api = HfApi()
            api.create_repo(name, private=private, exist_ok=True)
            api.upload_folder(repo_id=name, folder_path=folder,
                              commit_message="Upload a model of electra-tf")
        except errors.HfHubHTTPError as error:
            if hub.status_of(error) not in (401, 403):
                raise
            raise UserError(f"{constants.ENDPOINT} refuses to write {name} with this token: log in "
                            "with hf auth login, or set HF_TOKEN to a token that may "
                            "write.") from error
        except (errors.OfflineModeIsEnabled, errors.HTTPError, OSError) as error:
            raise UserError(f"{name} can't be uploaded to {constants.ENDPOINT}; connect, and "
                            f"repeat the command: {error}") from error
        return f"{constants.ENDPOINT}/{name}"


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_bool("private", False, "Create a private repository.")
    flags.DEFINE_string("license", None, "The Hub's identifier of the model's licence. Default: "
                        "apache-2.0.")
    flags.DEFINE_string("data_dir", "", "Directory of the records that a pre-training run was "
                        "trained on; the card describes them. Default: none.")


def run() -> None:
    """Runs the command line."""
    define()
    command_line.run(main, summary=__doc__, groups=GROUPS, operand="RUN NAME")


if __name__ == "__main__":
    run()
