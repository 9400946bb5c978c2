"""Fine-tuning heads on an encoder give the logits, losses and gradients of Google's code."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.modeling.encoder import create_encoder
from electra_tf.modeling.layers import LayerOptions
from electra_tf.modeling.task_heads import QuestionHead, ScoreHead
from tests.support import golden_files, named_arrays

INPUTS = golden_files.load_part("finetune_encoder", "input")
BUILD = {"dropout_rate": 0.0, "seed": 0}
ATOL = 2e-5


def assign(network, name: str):
    named_arrays.assign(
        network.trainable_variables, golden_files.load_part(f"finetune_{name}", "weight"))


class Case:
    """An encoder, a head with golden weights, and the tape of a forward pass."""

    def __init__(self, name: str, head):
        self.golden = golden_files.load(f"finetune_{name}")
        self.head = head
        self.encoder = create_encoder(golden_files.finetuned_config().discriminator,
                                      LayerOptions(seed=0))
        assign(self.encoder, "encoder")
        assign(head, "squad_train" if name == "squad_eval" else name)

    def hidden(self) -> tf.Tensor:
        return self.encoder(*(tf.constant(INPUTS[name]) for name in ("input_ids", "segment_ids")),
                            tf.constant(INPUTS["input_mask"] > 0))

    def assert_output(self, name: str, value, atol=ATOL):
        np.testing.assert_allclose(value, self.golden[f"output|{name}"], rtol=0, atol=atol)

    def assert_gradients(self, tape: tf.GradientTape, loss: tf.Tensor):
        self.assert_output("total_loss", loss, atol=1e-4)
        variables = [*self.encoder.trainable_variables, *self.head.trainable_variables]
        for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
            name = variable.name.split(":")[0]
            task = next(key for key in self.golden if key.startswith("gradnorm|task_specific/"))
            expected = self.golden["gradnorm|" + name.replace(
                "head/", "/".join(task.removeprefix("gradnorm|").split("/")[:2]) + "/")]
            norm = tf.linalg.global_norm([tf.convert_to_tensor(gradient)])
            # Those of key biases and of span biases are zero but for rounding.
            np.testing.assert_allclose(norm, expected, rtol=2e-4, atol=2e-4, err_msg=name)


@pytest.mark.parametrize(("name", "outputs", "output"), [
    ("cola_eval", 2, "logits"), ("sts_eval", 1, "predictions")])
def test_classification_and_regression(name, outputs, output):
    case = Case(name, ScoreHead("head", 32, outputs, **BUILD))
    with tf.GradientTape() as tape:
        logits = tf.squeeze(case.head(case.hidden()[:, 0]))
        losses = (tf.square(logits - INPUTS["sts_targets"]) if outputs == 1 else
                  tf.nn.sparse_softmax_cross_entropy_with_logits(INPUTS["cola_label_ids"], logits))
        total = tf.reduce_sum(losses)  # As there; our mean differs by a factor.
    case.assert_output(output, logits)
    case.assert_output("loss", losses, atol=1e-4 if outputs == 1 else ATOL)
    case.assert_gradients(tape, total)


def test_tagging():
    case = Case("chunk_eval", ScoreHead("head", 32, 25, **BUILD))
    words = INPUTS["chunk_labels_mask"] > 0
    logits = case.head(tf.gather(
        case.hidden(), tf.constant(INPUTS["chunk_labeled_positions"]), batch_dims=1))
    np.testing.assert_allclose(
        logits.numpy()[words], case.golden["output|logits"][words], rtol=0, atol=ATOL)
    assert words.sum() > 20


def allowed() -> tf.Tensor:
    context = (INPUTS["input_mask"] > 0) & (INPUTS["segment_ids"] > 0)
    context[:, 0] = True
    return tf.constant(context)


@pytest.mark.parametrize(("name", "options"), [
    ("squad_train", {}), ("squad_not_joint_train", {"conditioned": False, "answerability": False})])
def test_questions_in_training(name, options):
    case = Case(name, QuestionHead("head", 32, seed=0, **options))
    start, end = (INPUTS[f"{kind}_positions"] for kind in ("start", "end"))
    with tf.GradientTape() as tape:
        logits = case.head(case.hidden(), allowed(), tf.constant(start))
        losses = (tf.nn.sparse_softmax_cross_entropy_with_logits(start, logits.start)
                  + tf.nn.sparse_softmax_cross_entropy_with_logits(end, logits.end)) / 2
        if logits.impossible is not None:
            losses += 0.5 * tf.nn.sigmoid_cross_entropy_with_logits(
                tf.cast(INPUTS["is_impossible"], tf.float32), logits.impossible)
            case.assert_output("answerable_logit", logits.impossible)
        total = tf.reduce_sum(losses)  # As there; our mean differs by a factor.
    case.assert_output("start_logits", logits.start, atol=1e-3)  # Around -1000 where forbidden.
    case.assert_output("end_logits", logits.end, atol=1e-3)
    case.assert_output("loss", losses, atol=1e-4)
    case.assert_gradients(tape, total)


def test_questions_by_beams():
    case = Case("squad_eval", QuestionHead("head", 32, seed=0))
    beams = case.head.beams(case.hidden(), allowed(), 5)
    # Forbidden positions tie near -1000, in an order that rounding decides.
    starts, ends = (case.golden[f"output|{kind}_top_log_probs"] > -500 for kind in ("start", "end"))
    assert starts.sum() > 10
    for kind, likely in ("start", starts), ("end", starts[:, :, np.newaxis] & ends):
        index, log_probs = (getattr(beams, f"{kind}_{name}").numpy()[likely]
                            for name in ("index", "log_probs"))
        np.testing.assert_array_equal(index, case.golden[f"output|{kind}_top_index"][likely])
        np.testing.assert_allclose(
            log_probs, case.golden[f"output|{kind}_top_log_probs"][likely], rtol=0, atol=1e-4)
    case.assert_output("answerable_logit", beams.impossible)
