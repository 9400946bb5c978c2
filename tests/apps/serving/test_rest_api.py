"""TensorFlow Serving's documented REST API over real HTTP, and the page in a browser."""

import json
import math
import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.support import browser, running

DOCUMENTATION = Path(__file__).parents[3] / "docs" / "reference" / "signatures_and_rest.md"


def mixed(x, n, flag):
    return {"x": x, "n": n, "flag": flag}


def test_the_newest_version_is_available(texts):
    for path in ("", "/versions/2"):
        assert texts.get(path) == (200, {"model_version_status": [
            {"version": "2", "state": "AVAILABLE",
             "status": {"error_code": "OK", "error_message": ""}}]})


def test_metadata_describe_the_signatures(echo):
    status, content = echo.get("/metadata")
    assert status == 200 and content == echo.get("/versions/1/metadata")[1]
    assert content["model_spec"] == {"name": "echo", "signature_name": "", "version": "1"}
    signature = content["metadata"]["signature_def"]["signature_def"]["serving_default"]
    shape = {"dim": [{"size": "-1", "name": ""}], "unknown_rank": False}
    assert signature["inputs"] == {"text": {
        "dtype": "DT_STRING", "tensor_shape": shape, "name": "serving_default_text:0"}}
    assert signature["outputs"]["text"]["dtype"] == "DT_STRING"
    assert signature["method_name"] == "tensorflow/serving/predict"


def test_errors_are_json_with_a_status(texts):
    for method, path, expected in (
            ("GET", "/v1/models/other", 404), ("GET", "/%00%ff", 404), ("GET", "/?model=x", 404),
            ("GET", "/v1/models/texts/versions/" + "9" * 5000, 404),
            ("POST", "/v1/models/other:predict", 404),
            ("POST", "/v1/models/texts/versions/1:predict", 404),
            ("POST", "/v1/models/texts:classify", 405), ("GET", "/v1/models/texts:predict", 405),
            ("POST", "/v1/models/texts", 405), ("DELETE", "/v1/models/texts/metadata", 405)):
        status, text = texts.send(method, path, b"{}" if method == "POST" else None)
        assert (status, json.loads(text).keys()) == (expected, {"error"}), (method, path)
        assert len(text) < 600


BYTES = {"b64": "/wD+"}


@pytest.mark.parametrize(("model", "signature", "content", "answer"), [
    # One input is a plain value, and one output goes without its name.
    ("echo", "", {"instances": ["a", "é 😀", ""]}, ["a", "é 😀", ""]),
    ("echo", "", {"instances": [{"text": "a"}]}, ["a"]),
    ("echo", "", {"inputs": {"text": ["a"]}}, ["a"]), ("echo", "", {"inputs": []}, []),
    # Several are objects.
    ("numbers", "", {"instances": [mixed([1, 2], 1, True), mixed([0.5, 2], -1, False)]},
     [{"sum": 4.0, "flag": True, "rows": 2}, {"sum": 1.5, "flag": False, "rows": 2}]),
    ("numbers", "", {"inputs": mixed([[1, 2], [0.5, 2]], [1, -1], [True, False])},
     {"sum": [4.0, 1.5], "flag": [True, False], "rows": [2, 2]}),
    ("numbers", "count", {"inputs": ["a", "b"]}, {"count": 2, "unit": "texts"}),
    # Bytes are base64 in objects.
    ("numbers", "raw", {"instances": [BYTES, "abc"]},
     [{"copy_bytes": BYTES, "copy": "\ufffd\0\ufffd"},
      {"copy_bytes": {"b64": "YWJj"}, "copy": "abc"}]),
    # float32 is written in its shortest form, also where it isn't finite.
    ("numbers", "divide", {"inputs": [0.1, 3, 1e-30, -math.inf]},
     {"x": [0.1, 3.0, 1e-30, -math.inf], "y": [math.inf] * 3 + [-math.inf]})])
def test_requests_are_answered_in_their_format(request, model, signature, content, answer):
    name = "predictions" if "instances" in content else "outputs"
    client = request.getfixturevalue(model)
    assert client.predict({"signature_name": signature, **content}) == (200, {name: answer})


@pytest.mark.parametrize(("content", "words"), [
    ("{", "as JSON"), ("[" * 100_000, "as JSON"), ("[1]", "object"),
    ({"instances": ["a"], "inputs": ["a"]}, '"instances"'),
    ({"instances": []}, "at least one row"),
    ({"signature_name": "x", "instances": ["a"]}, "'x'; this model has serving_def"),
    ({"instances": [{"b64": "?"}]}, "base64"),
    ({"instances": [{"text": "a"}, "b"]}, "row 1 of 'instances' must be an object"),
    ({"instances": [["a"]]}, "Received: (1, 1)"),
    ({"instances": ["a", ["b"]]}, "Received: ['b']"),
    ({"inputs": {"txet": ["a"]}}, "'inputs' must be an object with text"),
    ('{"instances": ["\\ud800"]}', "input 'text'")], ids=lambda _: "")
def test_texts_are_refused(echo, content, words):
    assert words in echo.error(content)


@pytest.mark.parametrize(("rows", "words"), [
    ([mixed([1], 1.5, True)], "'n': must contain int32 values. Received: 1.5"),
    ([mixed([1], 2**31, True)], "'n': Python integer 2147483648 out of bounds"),
    ([mixed([1e39], 1, True)], "'x': overflow"),
    ([mixed([1, 2], 1, True), mixed([1], 1, True)], "'x': must have the shape (None, None), "
     "with lists of equal lengths. Received: (2,)")])
def test_numbers_are_refused(numbers, rows, words):
    assert words in numbers.error({"instances": rows})


def test_several_models_are_served_together(models):
    with running.client(models / "texts", models / "numbers") as client:
        assert client.predict({"instances": ["abcd"]})[1]["predictions"][0]["label"] == "neutral"
        assert client.send("GET", "/v1/models/numbers/versions/3")[0] == 200
        assert 'href="/?model=numbers"' in client.send("GET", "/")[1]
        assert '<meta name="model" content="numbers">' in client.send("GET", "/?model=numbers")[1]


def test_errors_of_a_graph_and_of_the_row_format_are_reported(numbers):
    assert numbers.error({"signature_name": "refuses_bad", "instances": ["bad"]}) == (
        "the model refused the inputs: assertion failed: [bad is not allowed]")
    assert "column format" in numbers.error({"signature_name": "count", "instances": ["a"]})


def examples():
    """Yields path, body (None to get) and the printed answer of every `$ curl` on the page."""
    text = DOCUMENTATION.read_text(encoding="utf-8")
    for block in re.findall(r"(?:^    .*\n)+", text, re.MULTILINE):
        for example in re.split(r"^    \$ ", block, flags=re.MULTILINE)[1:]:
            command, answer = re.split(r"(?=^    \{\"(?:pred|outp|err|model))", example, maxsplit=1,
                                       flags=re.MULTILINE)
            words = shlex.split(command.replace("\\\n", " "))
            body = words[words.index("-d") + 1] if "-d" in words else None
            yield words[1].removeprefix("http://127.0.0.1:8501"), body, json.loads(answer)


def rounded(value):
    """Returns JSON with fractions of five digits."""
    if isinstance(value, dict):
        return {name: rounded(item) for name, item in value.items()}
    if isinstance(value, list):
        return list(map(rounded, value))
    return round(value, 5) if isinstance(value, float) else value


def test_documented_requests_have_the_documented_answers(models, tmp_path):
    shutil.copytree(models / "texts" / "2", tmp_path / "demo" / "1")
    requests = list(examples())
    assert len(requests) >= 6
    with running.client(tmp_path / "demo") as client:
        for path, body, printed in requests:
            status, content = client.send("GET" if body is None else "POST", path, body)
            assert status == (400 if "error" in printed else 200), (path, body, content)
            assert rounded(json.loads(content)) == rounded(printed), (path, body)


@browser.in_a_browser
class TestPage:
    def ask(self, page, client, signature, *texts):
        """Opens the page, types with the keyboard alone, and waits for an answer or an error."""
        page.open(client.address)
        page.wait_for("!document.getElementById('form').hidden")
        page.script("document.querySelector(`input[value=${arguments[0]}]`).click();"
                    "document.querySelector('textarea').focus()", signature)
        page.keys("\ue004".join(texts))
        page.hold("\ue009", "\ue007")
        page.wait_for("['result', 'error'].some(id => !document.getElementById(id).hidden)")

    def test_a_set_of_labels_and_its_probabilities_are_shown(self, page, texts):
        self.ask(page, texts, "label_sets", "8 signs.")
        assert page.texts_of("#result .big") == ["negative, positive"]
        assert page.texts_of("#result .bar") == [
            "negative100.0 %", "neutral87.5 %", "positive100.0 %"]
        assert page.texts_of("#result .best span:first-child") == ["negative", "positive"]
        self.ask(page, texts, "label_sets", "a long text")
        assert page.texts_of("#result .big") == ["No label"]

    def test_an_answer_is_marked_where_it_stands(self, page, texts):
        self.ask(page, texts, "question_answering", "Who?", "Zo\u00eb\U0001f600 asked")
        # Five characters, of which one takes two units of JavaScript's strings.
        assert page.texts_of("mark") == ["Zo\u00eb\U0001f600 "]
        assert page.texts_of(".context") == ["Zo\u00eb\U0001f600 asked"]
        assert page.texts_of("#result .bar") == ["No answer10.0 %"]

    def test_markup_is_shown_as_text(self, page, texts):
        evil = "<img/src=x/onerror=document.title='broken'>"
        self.ask(page, texts, "tags", evil)
        assert page.texts_of(".chip span:first-child") == [evil]
        assert page.script("return [document.title, document.images.length]") == ["texts", 0]

    def test_errors_are_seen(self, page, numbers):
        self.ask(page, numbers, "refuses_bad", "bad")
        (message,) = page.texts_of("#error:not([hidden])")
        assert "bad is not allowed" in message
        page.keys(" no more")
        page.hold("\ue009", "\ue007")
        page.wait_for("!document.getElementById('result').hidden")
        assert page.texts_of("#error:not([hidden])") == []
