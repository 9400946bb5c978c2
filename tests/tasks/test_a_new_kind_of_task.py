"""A new kind of task, from reading to serving: it learns how many words a text has."""

import numpy as np
import tensorflow as tf

from electra_tf.data.buckets import Row
from electra_tf.finetuning import loop
from electra_tf.objectives.objective import LossOutput
from electra_tf.tasks import files, registry, tables
from electra_tf.tasks.kinds import base
from electra_tf.tasks.task import TextExample
from electra_tf.text.rows import RowEncoder, encode_texts
from tests.support import tiny_task


class WordCountObjective(base.TaskObjective):
    def compute(self, model, inputs, rng, *, training):
        tokens, rng = base.as_rows(inputs, rng if training else None)
        counts = 10 * tf.squeeze(model.head(model.encoder.first(*tokens, rng), rng), axis=-1)
        losses = tf.abs(counts - inputs.targets["count"])
        return LossOutput({"loss": base.sum_where(losses, inputs.present)}, {}, {"count": counts})


class WordCount(base.TaskKind):
    kind, metrics, objective_class = "word_count", ("mean_absolute_error",), WordCountObjective
    hugging_face = base.HuggingFaceHead(architecture="ElectraModel", layers={})
    inputs = ("text",)

    def read_file(self, path, spec, *, labelled, notes=None):
        return [TextExample(key=str(row.line), texts=(row.text("text"),), label=int(
            row.text("label"))) for row in tables.read_rows(path)]

    def baseline(self, spec, train, examples):
        return "always 14", self.score(examples, [{"count": 14}] * len(examples)).scores

    def encode(self, spec, examples, encoder, config):
        rows, lengths = encode_texts([example.texts for example in examples], encoder)
        return base.Split([Row(*row, {"count": np.float32(example.label)}) for row, example in zip(
            rows, examples, strict=True)], lambda results, _: self.score(examples, results),
            lengths, limit=encoder.max_length)

    def score(self, examples, results):
        counts = [float(result["count"]) for result in results]
        errors = np.array(counts) - [example.label for example in examples]
        return base.Scored([{"key": example.key, "prediction": count} for example, count in zip(
            examples, counts, strict=True)], {"mean_absolute_error": float(np.abs(errors).mean())})

    def served_scores(self, network, tokens):
        return {"count": 10 * tf.squeeze(network.head(network.first(tokens)), axis=-1)}


def test_a_new_kind_is_read_trained_scored_and_served(tmp_path, monkeypatch):
    monkeypatch.setitem(registry.KINDS, WordCount.kind, kind := WordCount())
    texts = [example.texts[0] for example in tiny_task.task_of().train]
    path, truth = tmp_path / "train.tsv", [len(text.split()) for text in texts]  # 3, 14 or 28.
    path.write_text("text\tlabel\n" + "".join(map("{}\t{}\n".format, texts, truth)))
    task = kind.user_task("word_count", files.Files(train=[path], dev=[path]))
    run = loop.prepare(tiny_task.run_of(training__num_train_epochs=9).config, task,
                       tiny_task.TEXT, tmp_path / "run")
    (scores,), model = loop.train(run, task, None).best.scores.values(), run.trained_model()
    served = kind.served_answer(base.ServedNetwork(
        encoder=model.encoder, head=model.head, row_encoder=RowEncoder(run.text, 32),
        spec=run.spec, config=run.config.task), tf.constant(texts))["count"]
    error = np.abs(served - truth).mean()  # A constant has at least 8.1.
    np.testing.assert_allclose(scores["mean_absolute_error"], error, rtol=1e-4)
    assert error < 3
