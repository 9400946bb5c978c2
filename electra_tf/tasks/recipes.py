"""Recipes of fine-tuning: the general one, and the differences of some tasks."""

from collections.abc import Mapping
from typing import Any

from electra_tf.config.finetuning import FinetuningConfig, finetuning_config
from electra_tf.config.model import ModelConfig
from electra_tf.config.overrides import override
from electra_tf.tasks.examples import Kind
from electra_tf.tasks.kinds.registry import KINDS
from electra_tf.tasks.mrqa import MRQA, QUESTIONS

DIFFERENCES: Mapping[str, Mapping[str, Any]] = {
    "rte": {"training.num_train_epochs": 10.0},
    "stsb": {"training.num_train_epochs": 10.0, "task.swap_pairs": True},
    "mrpc": {"task.swap_pairs": True},
    **dict.fromkeys(("squad", *MRQA), {"task.answerability": False}),
}
"""Task, as `--task` names it -> its settings besides its kind's (ELECTRA, appendix B, table 7)."""


def recipe(task: str, model: ModelConfig) -> FinetuningConfig:
    """Returns the default settings of a task; unknown tasks get the general recipe.

    Rows are at most as long as the encoder of settings `model` has positions.
    """
    general = finetuning_config(model)
    kind = Kind.QUESTION_ANSWERING if task in QUESTIONS else task
    of_kind = KINDS[kind].recipe if kind in set(Kind) else {}
    changes = {"task.max_seq_length": general.task.max_seq_length, **of_kind,
               **DIFFERENCES.get(task, {})}
    changes["task.max_seq_length"] = min(
        changes["task.max_seq_length"], model.max_position_embeddings)
    return override(general, changes)
