"""One model of new weights in every form that is served."""

import pathlib
from collections.abc import Iterable

from benchmarks.serving.answers import MAX_LENGTH
from electra_tf.checkpoints import formats
from electra_tf.checkpoints.formats import Format
from electra_tf.checkpoints.pretrained import Pretrained, TextSettings
from electra_tf.config.overrides import override
from electra_tf.config.sizes import pretraining_config
from electra_tf.export import finetuned, saved_model
from electra_tf.tasks import glue
from electra_tf.tasks.kinds.classification import ClassificationObjective
from electra_tf.tasks.recipes import recipe
from electra_tf.tasks.task import TaskSpec
from electra_tf.text.vocabulary import Vocabulary

HUGGING_FACE = "hugging_face"
_SST2 = glue.TASKS["sst2"]
_SPEC = TaskSpec(name=_SST2.name, kind=_SST2.kind, labels=_SST2.labels, metrics=_SST2.metrics,
                 texts=_SST2.texts, label=_SST2.label, key=_SST2.key)
_INITIALIZER_RANGE = 0.1
"""Of new weights. With the usual 0.02 every text gets nearly the same answer, and no difference
between two systems would show; with this, probabilities of texts differ by 0.2."""


def write(directory: pathlib.Path, vocabulary: Vocabulary, *, size: str,
          precisions: Iterable[str]) -> None:
    """Writes a classifier of SST-2's two classes.

    Args:
        directory: gets `PRECISION/1`, SavedModels, and `hugging_face`.
        vocabulary: decides the rest of its size.
        size: a model size's name.
        precisions: of the SavedModels.

    Raises:
        UserError: no such size; what the export refuses.
    """
    config = override(
        recipe(_SPEC.name, pretraining_config(size).model),
        {"model.vocab_size": vocabulary.size, "task.max_seq_length": MAX_LENGTH,
         "task.hidden_layer": True, "model.initializer_range": _INITIALIZER_RANGE})
    text = TextSettings(vocabulary=vocabulary)
    # Hugging Face's head, too, has one more layer before the last.
    model = ClassificationObjective(num_classes=len(_SPEC.labels), hidden_layer=True).build_model(
        config.model, seed=1, policy="float32")
    model_to_serve = finetuned.of_task(model, _SPEC, config.task, text, None)
    for precision in precisions:
        target = saved_model.Target.of(str(directory / precision), "1", precision)
        saved_model.export(model_to_serve, target)
    networks = Pretrained(
        source="new weights", model=config.model, text=text, task=_SPEC,
        head_settings={"task.hidden_layer": True},
        weights={variable.name.split(":")[0]: variable.numpy() for variable in model.variables})
    formats.write(networks, directory / HUGGING_FACE, Format.HUGGING_FACE)
