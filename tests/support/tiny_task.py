"""A classification of short sentences by one word, and runs of a narrow encoder on it."""

import numpy as np
import tensorflow as tf

from electra_tf.config.finetuning import FinetuningConfig
from electra_tf.config.overrides import override
from electra_tf.finetuning.run import FinetuningRun
from electra_tf.tasks.registry import KINDS
from electra_tf.tasks.task import Kind, Task, TaskSpec, TextExample
from electra_tf.text.normalization import TextSettings
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary

SETTINGS = {
    "model.vocab_size": 40, "model.embedding_size": 16, "model.hidden_size": 32,
    "model.num_layers": 1, "model.num_heads": 2, "model.intermediate_size": 64,
    "model.max_position_embeddings": 32, "task.max_seq_length": 32,
    "training.train_batch_size": 8, "training.num_train_epochs": 20,
    "training.precision": "float32", "optimizer.learning_rate": 2e-3,
    "optimizer.layerwise_decay": 1.0, "runtime.eval_batch_size": 8, "runtime.log_every_seconds": 0,
}
SPEC = TaskSpec(name="classification", kind=Kind.CLASSIFICATION, labels=("no", "yes"),
                metrics=("accuracy",))
WORDS = [f"word{number}" for number in range(35)]
TEXT = TextSettings(vocabulary=Vocabulary((*SPECIAL_TOKENS, *WORDS)))


def run_of(model_dir=None, strategy=None, **changes):
    config = override(FinetuningConfig(), SETTINGS | {
        name.replace("__", "."): value for name, value in changes.items()})
    return FinetuningRun(
        config=config, objective=KINDS[SPEC.kind].objective(SPEC, config.task), spec=SPEC,
        strategy=strategy or tf.distribute.OneDeviceStrategy("CPU:0"), text=TEXT,
        model_dir=model_dir)


def task_of(count=60, lengths=(3, 14, 28)):
    """Sentences of so many words; the label is "yes" if word7 is among them."""
    numbers = np.random.default_rng(1)
    examples = []
    for index in range(count):
        words = list(numbers.choice(WORDS[8:], numbers.choice(lengths)))
        if index % 2:
            words[numbers.integers(len(words))] = "word7"
        examples.append(TextExample(key=str(index), texts=(" ".join(words),),
                                    label=("no", "yes")[index % 2]))
    return Task(spec=SPEC, train=examples, dev={"dev": examples}, test={})
