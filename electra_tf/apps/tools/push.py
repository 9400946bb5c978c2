r"""Uploads a model to the Hugging Face Hub, with a model card.

    python -m electra_tf.apps.tools.push runs/mine user/name
    python -m electra_tf.apps.tools.push runs/mine user/name --data_dir=records --license=mit

RUN is a run's directory or another checkpoint. NAME is the repository, which is created if it does
not exist. It receives safetensors, config.json, the tokenizer's files and README.md; the files of a
generator are in generator/. Log in first with `hf auth login`, or set HF_TOKEN.
--init_checkpoint=user/name of run_finetuning.py, electra_tf.load("user/name") and transformers load
the model.
"""

import functools
import pathlib
import tempfile

from absl import flags

from electra_tf.core import command_line, hub, storage
from electra_tf.core.errors import UserError


def main(model: str, name: str) -> None:
    """Uploads a model with its card; `UserError` if --data_dir is not that of the run."""
    from electra_tf.checkpoints.run_directory import read_identity
    from electra_tf.data import manifest
    from electra_tf.export import card
    from electra_tf.formats import pretrained
    from electra_tf.formats.hugging_face import DISCRIMINATOR, GENERATOR
    from electra_tf.formats.pretrained import Format  # TensorFlow takes seconds to import.

    # The records must be those of the run.
    values, source = flags.FLAGS, storage.path(model)
    records = manifest.load(values.data_dir) if values.data_dir else None
    if records and records.fingerprint != read_identity(source).get("dataset"):
        raise UserError(f"--data_dir={values.data_dir} does not hold the records that "
                        f"{source} was trained on; name their directory, or leave the flag out.")

    # The files of the repository, then the upload.
    checkpoint = pretrained.read(source)
    with tempfile.TemporaryDirectory(prefix="electra-") as scratch:
        folder = pathlib.Path(scratch, "model")
        pretrained.write(checkpoint, folder, Format.HUGGING_FACE)
        if checkpoint.task is None:  # A repository of the Hub has one model in its root.
            if (folder / GENERATOR).exists():
                (folder / GENERATOR).rename(folder / DISCRIMINATOR / GENERATOR)
            folder /= DISCRIMINATOR
        if records:
            records.save(folder)
        card.write(folder, checkpoint, source, title=name, license=values.license,
                   transformers=name, records=records)
        with hub.one_line_errors(name):
            from huggingface_hub import HfApi, constants

            api = HfApi()
            api.create_repo(name, private=values.private, exist_ok=True)
            api.upload_folder(repo_id=name, folder_path=folder,
                              commit_message="Upload a model of electra-tf")
    print(f"uploaded {checkpoint.source}: {constants.ENDPOINT}/{name}\n"
          f"license  {values.license or 'none in the card; --license=mit states one'}")


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_bool("private", False, "Create a private repository.")
    flags.DEFINE_string("license", "", "License of the model, by the Hub's identifier, such as "
                        "cc-by-sa-4.0. The licenses of the training text and of the initial "
                        "weights limit the choice. Default: none.")
    flags.DEFINE_string("data_dir", "", "Directory of the records that the run was trained on, for "
                        "their description in the model card. Default: none.")


run = functools.partial(command_line.run, main, define, summary=__doc__, operand="RUN NAME")

if __name__ == "__main__":
    run()
