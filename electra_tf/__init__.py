"""ELECTRA in TensorFlow 2: pre-trained networks, and runs that train them.

    electra = electra_tf.load("google/electra-small-discriminator")
    electra.embed(["First text.", "Second text."])     # float32 [2, H]
    electra_tf.load_task("runs/sst2").predict(["..."])

`__all__` is the public interface. TensorFlow is imported when the first of its names is used.
"""

import importlib
import typing

__version__ = "0.1.0"

_MODULES = {
    "Electra": "api.electra", "ElectraEncoder": "api.encoder",
    "ElectraTokenizer": "api.tokenizer", "Word": "api.electra",
    "FinetuningConfig": "config.finetuning", "PretrainingConfig": "config.pretraining",
    "TaskModel": "api.runs", "finetune": "api.runs", "load": "api.electra",
    "load_task": "api.runs", "pretrain": "api.runs", "pretraining_config": "config.pretraining"}
"""Public name -> module."""
__all__ = ["Electra", "ElectraEncoder", "ElectraTokenizer", "FinetuningConfig",
           "PretrainingConfig", "TaskModel", "Word", "finetune", "load", "load_task", "pretrain",
           "pretraining_config"]

if typing.TYPE_CHECKING:
    from electra_tf.api.electra import Electra, Word, load
    from electra_tf.api.encoder import ElectraEncoder
    from electra_tf.api.runs import TaskModel, finetune, load_task, pretrain
    from electra_tf.api.tokenizer import ElectraTokenizer
    from electra_tf.config.finetuning import FinetuningConfig
    from electra_tf.config.pretraining import PretrainingConfig, pretraining_config


def __getattr__(name: str) -> typing.Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'electra_tf' has no attribute {name!r}")
    from electra_tf.core import machine

    machine.configure_libraries()
    return getattr(importlib.import_module(f"electra_tf.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
