"""TensorFlow Serving's REST API, as its documentation describes it, over real HTTP."""

import base64
import json
import math

import pytest


def mixed(x, n, flag):
    return {"x": x, "n": n, "flag": flag}


ROWS = [mixed([1, 2], 1, True), mixed([0.5, 2], -1, False)]
COLUMNS = mixed([[1, 2], [0.5, 2]], [1, -1], [True, False])


class TestWhatIsThere:
    @pytest.mark.parametrize("path", ["", "/versions/2"])
    def test_the_newest_version_is_available(self, texts, path):
        assert texts.get(path) == (200, {"model_version_status": [
            {"version": "2", "state": "AVAILABLE",
             "status": {"error_code": "OK", "error_message": ""}}]})

    @pytest.mark.parametrize("path", ["/metadata", "/versions/1/metadata"])
    def test_metadata_describe_the_signatures(self, echo, path):
        status, content = echo.get(path)
        assert status == 200
        assert content["model_spec"] == {"name": "echo", "signature_name": "", "version": "1"}
        signature = content["metadata"]["signature_def"]["signature_def"]["serving_default"]
        shape = {"dim": [{"size": "-1", "name": ""}], "unknown_rank": False}
        assert signature["inputs"] == {"text": {
            "dtype": "DT_STRING", "tensor_shape": shape, "name": "serving_default_text:0"}}
        assert signature["outputs"]["text"]["dtype"] == "DT_STRING"
        assert signature["outputs"]["text"]["tensor_shape"] == shape
        assert signature["method_name"] == "tensorflow/serving/predict"

    def test_errors_are_json_with_a_status(self, texts):
        requests = {
            ("GET", "/v2"): 404, ("GET", "/v1/models/other"): 404, ("GET", "/%00%ff"): 404,
            ("GET", "/v1/models/other/metadata"): 404, ("GET", "/v1/models/texts/nothing"): 404,
            ("GET", "/v1/models/texts/versions/1"): 404, ("GET", "/?model=x"): 404,
            ("GET", "/v1/models/texts/versions/" + "9" * 5000): 404,
            ("GET", "/v1/models/texts/" + "9" * 5000): 404,
            ("POST", "/v1/models/other:predict"): 404,
            ("POST", "/v1/models/texts/versions/1:predict"): 404,
            ("POST", "/v1/models/texts:classify"): 405, ("GET", "/v1/models/texts:predict"): 405,
            ("POST", "/v1/models/texts"): 405, ("DELETE", "/v1/models/texts/metadata"): 405,
            ("POST", "/"): 405}
        for (method, path), expected in requests.items():
            status, text = texts.send(method, path, b"{}" if method == "POST" else None)
            assert (status, json.loads(text).keys()) == (expected, {"error"}), (method, path)
            assert len(text) < 600


class TestRowFormat:
    def test_one_input_is_a_plain_value_and_one_output_goes_without_its_name(self, echo):
        assert echo.predict({"instances": ["a", "é 😀", ""]}) == (
            200, {"predictions": ["a", "é 😀", ""]})

    def test_several_inputs_and_outputs_are_objects(self, numbers):
        assert numbers.rows("", ROWS) == [{"sum": 4.0, "flag": True, "rows": 2},
                                          {"sum": 1.5, "flag": False, "rows": 2}]

    def test_outputs_without_rows_need_the_column_format(self, numbers):
        request = {"signature_name": "count", "instances": ["a"]}
        assert "column format" in numbers.error(request)


class TestColumnFormat:
    def test_one_output_is_the_value_itself(self, echo):
        assert echo.predict({"inputs": ["a", "b"]}) == (200, {"outputs": ["a", "b"]})
        assert echo.predict({"inputs": {"text": ["a"]}}) == (200, {"outputs": ["a"]})
        assert echo.predict({"inputs": []}) == (200, {"outputs": []})

    def test_outputs_without_rows_are_values(self, numbers):
        assert numbers.predict({"signature_name": "count", "inputs": ["a", "b"]}) == (
            200, {"outputs": {"count": 2, "unit": "texts"}})

    def test_several_outputs_are_an_object(self, numbers):
        assert numbers.predict({"inputs": COLUMNS}) == (200, {"outputs": {
            "sum": [4.0, 1.5], "flag": [True, False], "rows": [2, 2]}})


class TestValues:
    def test_bytes_are_base64_in_objects(self, numbers):
        content = {"b64": base64.b64encode(b"\xff\0\xfe").decode()}
        assert numbers.rows("raw", [content, "abc"]) == [
            {"copy_bytes": content, "copy": "\ufffd\0\ufffd"},
            {"copy_bytes": {"b64": "YWJj"}, "copy": "abc"}]
        status, answer = numbers.predict({"signature_name": "raw", "inputs": [content]})
        assert (status, answer["outputs"]["copy_bytes"]) == (200, [content])

    def test_float32_is_written_in_its_shortest_form(self, numbers):
        rows = numbers.rows("divide", [0.1, 3, 1e-30])
        assert [row["x"] for row in rows] == [0.1, 3.0, 1e-30]

    def test_numbers_that_are_not_finite_are_written_as_tokens(self, numbers):
        request = {"signature_name": "divide", "instances": [1, 0, -1, math.nan, math.inf]}
        status, text = numbers.send("POST", f"{numbers.path}:predict", json.dumps(request))
        y = [row["y"] for row in json.loads(text)["predictions"]]
        assert status == 200 and "Infinity" in text and "NaN" in text
        assert (y[0], y[2], y[4]) == (math.inf, -math.inf, math.inf)
        assert math.isnan(y[1]) and math.isnan(y[3])

class TestRefusals:
    def test_of_texts(self, echo):
        for content, words in [
                ("{", "isn't JSON"), (b"\xff\xfe\xfd", "isn't JSON"), ("1" * 5000, "isn't JSON"),
                ("[" * 100_000, "isn't JSON"), ("[1]", "object"), ({}, '"instances"'),
                ({"instances": ["a"], "inputs": ["a"]}, '"instances"'),
                ({"instances": []}, "at least one row"), ({"instances": "a"}, "must be a list"),
                ({"signature_name": "x", "instances": ["a"]}, "'x'; this model has serving_def"),
                ({"instances": [None]}, "Received: None"),
                ({"instances": [{"b64": "?"}]}, "base64"),
                ({"instances": [{"text": "a"}, "b"]}, "row 1 of 'instances' must be an object"),
                ({"instances": [["a"]]}, "shape (None,). Received: (1, 1)"),
                ({"instances": ["a", ["b"]]}, "ragged"),
                ({"instances": [json.loads("[" * 500 + "]" * 500)]}, "too deep"),
                ({"inputs": {"txet": ["a"]}}, "'inputs' must be an object with text"),
                ('{"instances": ["\\ud800"]}', "input 'text'")]:
            assert words in echo.error(content), content

    def test_of_numbers(self, numbers):
        for rows, words in [
                (["a"], "row 0 of 'instances' must be an object with flag, n, x"),
                ([mixed([1], 1.5, True)], "'n': must contain int32 values. Received: 1.5"),
                ([mixed([1], 2**31, True)], "'n': Python integer 2147483648 out of bounds"),
                ([mixed([1], True, True)], "Received: True"),
                ([mixed([1], 1, 1)], "'flag': must contain bool"),
                ([mixed([1e39], 1, True)], "'x': overflow"),
                ([mixed([1, 2], 1, True), mixed([1], 1, True)], "'x' is ragged")]:
            assert words in numbers.error({"instances": rows}), rows

    def test_what_the_graph_refuses_is_told_without_its_traces(self, numbers):
        message = numbers.error({"signature_name": "refuses_bad", "instances": ["bad"]})
        assert message == ("the model refused the inputs: "
                           "assertion failed: [bad is not allowed]")
