"""Rows' results become predictions, in order, with scores by hand or by official scripts."""

import warnings

import numpy as np
import pytest
import tensorflow as tf
from official.nlp.tools import squad_evaluate_v1_1, squad_evaluate_v2_0
from seqeval.metrics import accuracy_score

from electra_tf.config.finetuning import TaskConfig
from electra_tf.data.buckets import Row
from electra_tf.tasks.files import read_tagged
from electra_tf.tasks.kinds import answers, tagging
from electra_tf.tasks.kinds.answers import Contexts, Questions, answer_scores, best_threshold
from electra_tf.tasks.kinds.classification import SCORERS, label_scores
from electra_tf.tasks.kinds.tagging import WORD_SCORERS, Tagging, tag_scores
from electra_tf.tasks.registry import KINDS
from electra_tf.tasks.task import Kind, QuestionExample, TaggedExample, TaskSpec, TextExample
from electra_tf.text.rows import Windows
from tests.support.text_files import write

# Two right "1", one right "0", one "0" called "1", one "1" called "0".
LABELS, PREDICTIONS = np.array([1, 1, 0, 0, 1]), np.array([1, 1, 0, 1, 0])
TAGS = [["B-PER", "I-PER", "O", "B-LOC"], ["B-ORG", "O"]]


def span_scores(tags, predictions):
    return tag_scores(Tagging.metrics, tags, predictions)


def test_classes_and_numbers():
    assert label_scores(["accuracy", "f1", "mcc"], LABELS, PREDICTIONS) == pytest.approx({
        "accuracy": 3 / 5, "f1": 2 * 2 / (2 * 2 + 1 + 1),
        "mcc": (2 * 1 - 1 * 1) / (3 * 3 * 2 * 2) ** 0.5})
    # F1 per class: 1, 0, and 2 * 2 / (2 * 2 + 1 + 0).
    assert label_scores(["accuracy", "f1_macro"], np.array([0, 1, 2, 2]), np.array([0, 2, 2, 2])
                        ) == pytest.approx({"accuracy": 3 / 4, "f1_macro": (1 + 0 + 4 / 5) / 3})
    # Deviations -1, 0, 1 and -3, -1, 4; the ranks agree.
    assert label_scores(["pearson", "spearman", "mean_squared_error"], np.array([1.0, 2.0, 3.0]),
                        np.array([1.0, 3.0, 8.0])) == pytest.approx({
                            "pearson": 7 / (2 * 26) ** 0.5, "spearman": 1.0,
                            "mean_squared_error": (0 + 1 + 25) / 3})
    for name, scorer in SCORERS.items():
        assert scorer(LABELS, LABELS) == pytest.approx(0.0 if name.endswith("error") else 1.0)


def test_constant_predictions_and_plain_tags_score_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert label_scores(["mcc", "f1"], np.array([0, 1, 0, 1]), np.zeros(4, int)) == {
            "mcc": 0.0, "f1": 0.0}
        constant = label_scores(["pearson", "spearman"], np.arange(4.0), np.ones(4))
        assert span_scores(TAGS, [["O"] * 4, ["O"] * 2])["f1"] == 0.0
        # SCONJ has F1 0, CCONJ 0 and NOUN 1; with all first letters dropped, all were right.
        assert tag_scores(WORD_SCORERS, [["SCONJ", "NOUN", "NOUN"]], [["CCONJ", "NOUN", "NOUN"]]
                          ) == pytest.approx({"accuracy": 2 / 3, "f1_macro": 1 / 3})
    assert all(np.isnan(value) for value in constant.values())


def test_a_span_counts_only_with_its_ends_and_its_type():
    # Of PER the end is wrong, LOC is right, ORG has the wrong type: 1 of 3 predicted, 1 of 3 true.
    predictions = [["B-PER", "O", "O", "B-LOC"], ["B-PER", "O"]]
    assert span_scores(TAGS, predictions) == pytest.approx(
        {"precision": 1 / 3, "recall": 1 / 3, "f1": 1 / 3, "accuracy": 4 / 6})
    assert span_scores([["B-NP", "B-NP"]], [["B-NP", "I-NP"]]) == pytest.approx(
        {"precision": 0.0, "recall": 0.0, "f1": 0.0, "accuracy": 1 / 2})
    assert span_scores([["B-NP", "I-NP"]], [["I-NP", "I-NP"]])["f1"] == 1.0
    # Tags of BILOU and with the letter last: the first of two spans is right.
    for true, predicted in (("U-A U-A O", "U-A B-A L-A"), ("A-B A-B O", "A-B A-B A-I")):
        assert span_scores([true.split()], [predicted.split()])["f1"] == 1 / 2


def test_accuracy_of_a_converted_model_is_that_of_its_own_scheme(tmp_path):
    iob1 = "I-PER I-PER O\nI-PER B-PER I-LOC\n"
    bilou = "B-PER L-PER O\nU-PER U-PER U-LOC\n"
    iobes, ioe2 = bilou.replace("L-", "E-").replace("U-", "S-"), bilou.replace(
        "B-", "I-").replace("L-", "E-").replace("U-", "E-")
    labels = ("O", "I-PER", "I-LOC", "B-LOC"), *(("O", *(
        f"{letter}-{kind}" for letter in letters for kind in ("PER", "LOC")))
        for letters in ("BILU", "BIES"))
    for text, known in zip((iob1, bilou, iobes), labels, strict=True):
        gold = [line.split() for line in text.splitlines()]
        predicted = [[gold[0][0]] * 3, [gold[1][0]] * 3]
        for written in (iob1, bilou, iobes, ioe2, "B-PER I-PER O\nB-PER B-PER B-LOC\n"):
            path = write(tmp_path / "a.txt", "\n\n".join(
                "\n".join(f"w {tag}" for tag in line.split()) for line in written.splitlines()))
            spec = TaskSpec(name="tagging", kind="tagging", labels=known, metrics=("f1",))
            tags = [example.tags for example in read_tagged(path, spec)]
            assert [list(part) for part in tags] == gold
            scores = span_scores(tags, predicted)
            assert scores["accuracy"] == accuracy_score(gold, predicted)


def squad(gold):
    """Questions with these texts as answers, as in SQuAD's files."""
    return [{"paragraphs": [{"qas": [
        {"id": key, "answers": [{"text": text} for text in texts]}
        for key, texts in gold.items()]}]}]


@pytest.mark.parametrize(("gold", "predicted", "exact", "f1"), [
    (["The Denver Broncos!"], "denver  broncos", 1, 1), (["24-10"], "2410", 1, 1),
    (["Denver Broncos"], "Broncos", 0, 2 * 1 * 0.5 / 1.5),  # Precision 1, recall 1/2.
    (["Denver", "the Broncos of Denver"], "Broncos of Denver", 1, 1),  # The nearest counts.
    (["Denver"], "Carolina", 0, 0), (["Denver"], "", 0, 0), ([], "", 1, 1), ([], "Denver", 0, 0),
    (["café"], "cafe", 0, 0), (["1 2 2"], "2 2 3", 0, 2 / 3), (["—"], "", 0, 0),
    (["The", "Beatles"], "the", 0, 0), (["The"], "a", 1, 1),
    (["The\xa0dog"], "dog", 1, 1), (["state-of-the-art"], "state of art", 0, 0)])
def test_answers_score_as_with_the_official_script(gold, predicted, exact, f1):
    scores = answer_scores({"q": gold}, {"q": predicted})
    assert (scores["exact_match"], scores["f1"]) == pytest.approx((exact, f1))
    if gold and predicted not in ("the", "a"):  # Version 1.1 has no answers without words.
        official = squad_evaluate_v1_1.evaluate(squad({"q": gold}), {"q": predicted})
        assert (official["exact_match"], official["final_f1"]) == pytest.approx((exact, f1))


def test_scores_and_threshold_equal_model_gardens_on_many_predictions():
    numbers = np.random.default_rng(8)
    words = ["the", "The", "a", "an", "Denver", "Broncos", "denver's", "24–10", "10,000", "(1999)",
             "U.S.", "Café", "in", "—", "won", "é", "\xa0of", "state-of-the-art", ".", "Ünal"]

    def text(max_words=5):
        return " ".join(numbers.choice(words, numbers.integers(1, max_words)))

    for learned in (0.0, 0.4):
        gold, candidates = {}, []
        for index in range(2000):
            none = numbers.random() < learned
            gold[f"q{index}"] = [] if none else [text() for _ in range(numbers.integers(1, 4))]
            answer = text()
            if not none and numbers.random() < 0.4:
                answer = gold[f"q{index}"][0].upper() + " ."
            candidates.append("" if numbers.random() < 0.1 else answer)
        logits = np.round(numbers.normal(0.0, 3.0, len(gold)), 1).tolist()
        logits[:4] = [60.0, 50.0, -800.0, 40.0]  # Probabilities of 1 and 0.
        predictions = dict(zip(gold, candidates, strict=True))
        with np.errstate(over="ignore"):
            odds = dict(zip(gold, map(float, 1 / (1 + np.exp(-np.array(logits)))), strict=True))
            threshold = best_threshold(gold, candidates, logits)
        best = squad_evaluate_v2_0.evaluate(squad(gold), predictions, odds)["final_f1_thresh"]
        answered = np.array([*odds.values()]) <= best
        lower = np.max(logits, where=answered, initial=min(logits) - 2.0)
        upper = np.min(logits, where=~answered, initial=max(logits) + 2.0)
        assert threshold == (lower + upper) / 2  # Far from the logits of both.
        expected = squad_evaluate_v2_0.evaluate(squad(gold), predictions)
        scores = answer_scores(gold, predictions)
        names = {"exact": "exact_match", "f1": "f1", "HasAns_exact": "answerable_exact_match",
                 "HasAns_f1": "answerable_f1", "NoAns_exact": "unanswerable_accuracy"}
        # Python's `sum` rounds in another way from 3.12 on.
        assert scores == pytest.approx({names[name]: value / 100.0
                                        for name, value in expected.items() if name in names},
                                       rel=1e-12)
        assert 0.1 < scores["f1"] < 0.9


def test_a_baseline_gives_the_most_frequent_label_of_training():
    spec = TaskSpec(name="mrpc", kind=Kind.CLASSIFICATION, labels=("0", "1"),
                    metrics=("accuracy", "f1"))
    # Three of four are equivalent: precision 3 / 4, recall 1.
    assert KINDS[Kind.CLASSIFICATION].baseline(
        spec, texts("1", "0", "1"), texts("1", "1", "0", "1")) == (
            "always equivalent", {"accuracy": 0.75, "f1": pytest.approx(2 * 0.75 / 1.75)})
    spec = TaskSpec(name="regression", kind=Kind.REGRESSION,
                    metrics=("pearson", "mean_squared_error"))
    name, scores = KINDS[Kind.REGRESSION].baseline(spec, texts(1.0, 3.0), texts(2.0, 5.0))
    assert name == "always the mean, 2" and np.isnan(scores["pearson"])
    assert scores["mean_squared_error"] == (0 + 9) / 2
    tagged = [TaggedExample(key="1", words=("a", "b"), tags=tags)
              for tags in (("O", "O"), ("B-X", "O"))]
    tagging_spec = KINDS[Kind.TAGGING].build_spec("tagging", ("B-X", "O"))
    name, scores = KINDS[Kind.TAGGING].baseline(tagging_spec, tagged, tagged[1:])
    assert (name, scores["accuracy"], scores["f1"]) == ("always O", 0.5, 0.0)
    name, scores = KINDS[Kind.QUESTION_ANSWERING].baseline(None, [], questions("none", "answer"))
    assert (name, scores["f1"], scores["answerable_f1"]) == ("never an answer", 0.5, 0.0)


def texts(*labels):
    return [TextExample(key=f"k{number}", texts=("x",), label=label)
            for number, label in enumerate(labels)]


def test_classes():
    # As GLUE's files write RTE's labels, and as people read them.
    spec = TaskSpec(name="sst2", kind="classification", labels=("0", "1"), metrics=("accuracy",))
    results = [{"logits": np.array(logits, np.float32)} for logits in ([2, 0], [0, 1], [0, 0.5])]
    scored = KINDS[Kind.CLASSIFICATION].score(spec, texts("0", "1", "0"), results)
    assert scored.scores == {"accuracy": pytest.approx(2 / 3)}
    assert [record["prediction"] for record in scored.records] == [
        spec.label_words[0], spec.label_words[1], spec.label_words[1]]
    assert scored.records[0]["probability"] == pytest.approx(1 / (1 + np.exp(-2)))
    assert scored.records[1]["key"] == "k1"
    assert [record["gold"] for record in scored.records] == ["negative", "positive", "negative"]
    assert sum(scored.records[1]["probabilities"].values()) == pytest.approx(1.0)
    unknown = KINDS[Kind.CLASSIFICATION].score(spec, texts(None), results[:1])
    assert (unknown.scores, unknown.records[0]["prediction"]) == ({}, spec.label_words[0])
    assert "gold" not in unknown.records[0]


def test_tags_of_a_sentence_in_several_rows_are_joined():
    spec = TaskSpec(name="tagging", kind="tagging", labels=("O", "B-X", "I-X"),
                    metrics=Tagging.metrics)
    examples = [TaggedExample(key="1", words=("a", "b", "c"), tags=("B-X", "I-X", "O")),
                TaggedExample(key="2", words=("d",), tags=("B-X",))]
    rows = [Row(np.zeros(4), np.zeros(4), {}, {"tag": np.zeros(size)}) for size in (2, 1, 1)]
    results = [{"tags": np.array(tags), "probability": np.array(shares, np.float32)}
               for tags, shares in (([1, 2, 0, 0], [0.5, 0.25, 1, 1]), ([0, 2], [0.75, 1]),
                                    ([0, 1], [0.125, 1]))]
    scored = tagging.score(spec, examples, rows, results)
    assert [record["prediction"] for record in scored.records] == [["B-X", "I-X", "O"], ["O"]]
    assert [record["probability"] for record in scored.records] == [[0.5, 0.25, 0.75], [0.125]]
    assert scored.scores["recall"] == pytest.approx(1 / 2)
    assert scored.scores["precision"] == 1.0


CONTEXT = "Denver won"


def questions(*kinds):
    """Questions about the same two words, with or without an answer, or not known."""
    return [QuestionExample(key=f"q{number}", question="Who?", context=CONTEXT,
                            gold=("Denver",) if kind == "answer" else (),
                            is_impossible=kind == "none") for number, kind in enumerate(kinds)]


def rows_with(*logits):
    """Every row finds "Denver", and its logit of "impossible" is given; None for no such head."""
    beams = {"start_log_probs": np.float32([-1.0]), "start_index": np.int32([3]),
             "end_log_probs": np.float32([[-1.0]]), "end_index": np.int32([[3]])}
    return [beams | ({} if logit is None else {"impossible": np.float32(logit)})
            for logit in logits]


def score(examples, results, threshold=None):
    count = len(examples)
    encoded = Questions(
        rows=[None] * count, contexts=Contexts(tf.constant([CONTEXT]), tf.ragged.constant([[0, 7]]),
                                   tf.ragged.constant([[6, 10]]), tf.zeros(count, tf.int32)),
        query_lengths=np.ones(count),
        windows=Windows(example=tf.range(count), first=tf.zeros(count, tf.int32),
                        sizes=tf.fill([count], 2), position=tf.fill([count], 3),
                        is_best=tf.fill([2 * count], True)))
    return answers.score(examples, [encoded], results, TaskConfig(), threshold)


def test_the_threshold_is_searched_where_the_truth_is_known():
    scored = score(questions("answer", "none", "answer"), rows_with(-3.0, 2.0, -1.0))
    assert scored.scores["f1"] == scored.scores["exact_match"] == 1.0
    assert scored.scores["threshold"] == 0.5
    assert [record["prediction"] for record in scored.records] == ["Denver", "", "Denver"]
    assert {name: scored.records[1][name] for name in ("best_answer", "start", "score")} == {
        "best_answer": "Denver", "start": 0, "score": pytest.approx(np.exp(-2.0))}


def test_rows_that_are_shorter_than_the_beam_have_narrower_ones():
    wide = {"start_log_probs": np.float32([-9.0, -1.0]), "start_index": np.int32([0, 3]),
            "end_log_probs": np.float32([[-9.0, -9.0], [-9.0, -1.0]]),
            "end_index": np.int32([[0, 0], [0, 4]]), "impossible": np.float32(-3.0)}
    scored = score(questions("answer", "answer"), [*rows_with(-3.0), wide])
    assert [record["prediction"] for record in scored.records] == ["Denver", "Denver won"]


def test_a_given_threshold_is_kept_and_otherwise_googles_is_used():
    scored = score(questions("answer", "none"), rows_with(-3.0, 2.0), threshold=-4.0)
    assert [record["prediction"] for record in scored.records] == ["", ""]
    assert scored.scores["f1"] == pytest.approx(1 / 2)
    assert "threshold" not in scored.scores
    always = score(questions("answer", "none"), rows_with(None, None))
    assert always.scores["f1"] == pytest.approx(1 / 2)
    unknown = score(questions("unknown", "unknown"), rows_with(-3.0, -2.0))
    assert unknown.scores == {}
    assert [record["prediction"] for record in unknown.records] == ["Denver", ""]  # -2.75.
