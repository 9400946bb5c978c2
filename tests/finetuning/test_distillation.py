"""A student learns its teacher's probabilities, label by label, from texts with or without one."""

import dataclasses
import types

import numpy as np
import pytest
import tensorflow as tf
from scipy import special

from electra_tf.config.finetuning import FinetuningConfig, FinetuningTrainingConfig
from electra_tf.config.overrides import override
from electra_tf.data.buckets import RowBatch
from electra_tf.export import servable
from electra_tf.finetuning import distillation, loop
from electra_tf.finetuning.distillation import DistillationObjective
from electra_tf.finetuning.run import prepare_run
from electra_tf.formats import pretrained
from electra_tf.formats.pretrained import Format
from electra_tf.tasks import registry
from electra_tf.tasks.files import Files
from electra_tf.tasks.task import BINARY, Kind, Task, TaskSpec, TextExample
from electra_tf.text.normalization import TextSettings
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support import named_arrays, tiny_networks
from tests.support.golden_batch import RNG
from tests.support.refusals import refused
from tests.support.text_files import write

SETTINGS = {
    "model.embedding_size": 8, "model.hidden_size": 16, "model.num_layers": 1,
    "model.num_heads": 2, "model.intermediate_size": 16, "model.max_position_embeddings": 16,
    "task.max_seq_length": 16, "training.train_batch_size": 8, "training.num_train_epochs": 2,
    "training.precision": "float32", "optimizer.learning_rate": 1e-2, "runtime.cpu_parts": 1,
    "runtime.distribution_strategy": "one_device"}
TEXT = TextSettings(vocabulary=Vocabulary((*SPECIAL_TOKENS, *(f"word{n}" for n in range(20)))))
SPEC = TaskSpec(name="classification", kind=Kind.CLASSIFICATION, labels=("a", "b", "c"),
                metrics=("accuracy",))
EXAMPLES = [TextExample(key=str(number), texts=(f"word{number} word{3 * number % 20}",),
                        label="abc"[number % 3]) for number in range(20)]


def teacher_at(path, form=Format.RUN, labels=("c", "a", "b"), kind=Kind.CLASSIFICATION):
    teacher = tiny_networks.finetuned(
        tiny_networks.pretrained(), kind, labels, {"dense": len(labels) or 1})
    pretrained.write(teacher, path, form)
    return path


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    """A wider network than the student's, with another vocabulary and order of labels."""
    return teacher_at(tmp_path_factory.mktemp("teachers") / "run")


def run_of(model_dir, spec=SPEC, **changes):
    config = override(FinetuningConfig(), SETTINGS | {
        f"training.{name}": value for name, value in changes.items()})
    return prepare_run(config, spec, TEXT, model_dir)


def task_of(count=20, **changes):
    return Task(spec=SPEC, train=EXAMPLES[:count], dev={"dev": EXAMPLES}, test={}, **changes)


STUDENT = [[1., -.5, .25], [0., 2., -1.], [-1.5, .5, 3.]]
TEACHER = [[2., .5, -1.], [-.5, 1., 0.], [0., -2., 1.5]]


@pytest.mark.parametrize(("kind", "temperature", "labelled", "hard", "soft"), [
    (Kind.CLASSIFICATION, 1.0, 3, 1.7623084, 0.2700023),
    (Kind.CLASSIFICATION, 2.0, 2, 0.3489109, 0.5132017),
    (Kind.CLASSIFICATION, 5.0, 3, 1.7623084, 0.6888114),
    (Kind.MULTILABEL, 2.0, 2, 0.7494359, 0.2097830)])
def test_the_losses_equal_those_of_pytorch(kind, temperature, labelled, hard, soft):
    """PyTorch 2's F.cross_entropy(student[:labelled], [0, 1, 0][:labelled]),
    F.kl_div(F.log_softmax(student / T, -1), F.softmax(teacher / T, -1), reduction="batchmean") *
    T**2. For sets of labels BCEWithLogitsLoss()(student[:labelled], [[1, 0, 1], [0, 0, 0]]) and
    T**2 * kl_divergence(Bernoulli(logits=teacher / T), Bernoulli(logits=student / T)).mean().
    """
    objective = DistillationObjective(
        tiny_networks.task_objective(kind, 3), FinetuningTrainingConfig(
            distillation_temperature=temperature, distillation_weight=0.25))
    model = types.SimpleNamespace(
        encoder=types.SimpleNamespace(first=lambda *_: tf.zeros([4, 2])),
        head=lambda *_: tf.constant([*STUDENT, [9., 0., 0.]]))
    tokens = tf.ones([4, 2], tf.int32)
    batch = RowBatch(tokens, tokens > 0, tokens, tf.constant([True] * 3 + [False]), {
        "label": tf.constant([0, 1, 0, 0]), "labels": tf.constant([[1., 0., 1.], *[[0.] * 3] * 3]),
        "is_labelled": tf.range(4) < labelled,
        "teacher/logits": tf.constant([*TEACHER, [0.] * 3])})
    inputs, terms = objective.prepare_inputs(batch, RNG)
    sums = objective.compute(model, inputs, RNG, training=True).loss_sums
    means = {name: float(sums[name] / terms[name]) for name in sums}
    assert means == pytest.approx({"hard": hard, "soft": soft}, rel=1e-5)
    assert objective.loss_weights == {"hard": 0.75, "soft": 0.25}


@pytest.mark.parametrize("form", [Format.RUN, Format.HUGGING_FACE])
def test_a_teachers_labels_are_matched_by_name(form, tmp_path, capsys):
    teacher = teacher_at(tmp_path / "teacher", form)
    run = distillation.with_teacher(run_of(tmp_path / "student"), teacher)
    unlabelled = [dataclasses.replace(EXAMPLES[3], label=None)]
    rows = run.encode([*EXAMPLES, *unlabelled]).rows
    rows = distillation.add_targets(run, [*EXAMPLES, *unlabelled], rows, {"dev": EXAMPLES})
    texts = tf.constant([example.texts[0] for example in EXAMPLES])
    served = servable.build(pretrained.read(teacher))
    answers = served.answer(texts)
    assert answers["labels"][0].numpy().tolist() == [b"c", b"a", b"b"]
    logits = np.array([row.targets["teacher/logits"] for row in rows])
    np.testing.assert_allclose(special.softmax(logits[:20], axis=1),
                               answers["probabilities"].numpy()[:, [1, 2, 0]], atol=1e-5)
    np.testing.assert_array_equal(logits[20], logits[3])
    assert [row.targets["is_labelled"] for row in rows] == [True] * 20 + [False]
    accuracy = 100 * np.mean([label.decode() == example.label for label, example in zip(
        answers["label"].numpy(), EXAMPLES, strict=True)])
    assert f"21 rows; dev: accuracy {accuracy:.2f}\n" in capsys.readouterr().out


def test_a_student_learns_the_teachers_probabilities_without_labels(teacher, tmp_path, capsys):
    run = distillation.with_teacher(run_of(
        tmp_path, distillation_weight=1.0, num_train_epochs=40, num_trials=1), teacher)
    loop.train(run, task_of(3, unlabelled=[
        dataclasses.replace(example, label=None) for example in EXAMPLES[3:]]), None)
    printed = capsys.readouterr().out
    assert "train 3 and 17 unlabelled as 20 rows" in printed
    weights = named_arrays.of_run(tmp_path)
    assert {name.split("/")[0] for name in weights} == {"electra", "head"}
    texts = tf.constant([example.texts[0] for example in EXAMPLES])
    expected, learned = (
        servable.build(pretrained.read(path)).answer(texts)["probabilities"].numpy()
        for path in (teacher, tmp_path))
    assert np.abs(expected - expected.mean(axis=0)).mean() > 0.1
    assert np.abs(learned - expected[:, [1, 2, 0]]).mean() < 0.05


def test_a_run_does_not_resume_with_another_teacher(teacher, tmp_path):
    changed = pretrained.read(teacher)
    weights = {**changed.weights, "head/dense/bias": changed.weights["head/dense/bias"] + 1.0}
    run = dataclasses.replace(run_of(tmp_path / "student"), teacher=changed)
    loop.train(run, task_of(), None)
    for other, words in ((dataclasses.replace(changed, weights=weights), "teacher_digest"),
                         (None, "teacher: .*no such setting now")):
        with refused(words):
            loop.train(dataclasses.replace(run, teacher=other), task_of(), None)


def test_unlabelled_files_need_no_labels_and_use_none(tmp_path):
    table = write(tmp_path / "new.tsv", "text\tlabel\nword1\ta\nword2\tb\n")
    lines = write(tmp_path / "new.txt", "word3\n")
    task = registry.with_unlabelled(task_of(), Files(unlabelled=[table, lines], key_column="id"))
    assert [(example.texts, example.label) for example in task.unlabelled] == [
        (("word1",), None), (("word2",), None), (("word3",), None)]
    assert task.notes == ["--unlabelled: labels of 2 of 3 rows are not used"]
    spec = TaskSpec(name="tagging", kind=Kind.TAGGING, labels=("O", "B"), metrics=("f1",))
    with refused("--unlabelled is for --task=classification or multilabel"):
        registry.with_unlabelled(dataclasses.replace(task, spec=spec), Files(unlabelled=[table]))


@pytest.mark.parametrize(("name", "labels", "order"), [
    ("mine", ("POSITIVE", "NEGATIVE"), [1, 0]), ("mine", ("1", "0"), [1, 0]),
    ("mine", ("LABEL_0", "LABEL_1"), None), ("cola", BINARY, None),
    ("mine", ("negative", "positive", "neutral"), None)])
def test_labels_are_words_or_numbers_in_any_case(name, labels, order):
    student = dataclasses.replace(SPEC, name="sst2", labels=BINARY)
    other = dataclasses.replace(SPEC, name=name, labels=labels)
    if order is None:
        with refused("'negative', 'positive'.*same names"):
            distillation._label_order(student, other, "t")
    else:
        assert distillation._label_order(student, other, "t") == order


def pretrained_at(path):
    pretrained.write(tiny_networks.pretrained(), path, Format.RUN)
    return path


@pytest.mark.parametrize(("make", "spec", "changes", "words"), [
    (pretrained_at, {}, {}, "is not fine-tuned.*--init_checkpoint="),
    (lambda path: teacher_at(path, kind=Kind.REGRESSION, labels=()), {}, {}, r"\(regression\)"),
    (teacher_at, {"kind": Kind.REGRESSION, "labels": ()}, {}, "Received: regression, --te"),
    (teacher_at, {"text_columns": ("a", "b")}, {}, r"1 text\(s\) per example, and .* 2\."),
    (lambda path: teacher_at(path, labels=("a", "b")), {}, {}, r"labels \('a', 'b'\)"),
    (lambda path: path.parent / "student", {}, {}, "is in --model_dir")])
def test_an_unusable_teacher_is_refused(tmp_path, make, spec, changes, words):
    path = make(tmp_path / "teacher")
    run = run_of(tmp_path / "student", dataclasses.replace(SPEC, **spec), **changes)
    with refused(words):
        distillation.with_teacher(run, path)
