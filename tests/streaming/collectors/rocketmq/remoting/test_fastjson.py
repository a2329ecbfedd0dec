import json
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streaming.collectors.rocketmq.remoting import fastjson
from streaming.collectors.rocketmq.remoting.fastjson import FastjsonError, read
from tests.kit.rocketmq_script import fastjson as written_as_fastjson
from tests.streaming.collectors.rocketmq.golden_answers import NAMES, VERSIONS, recorded, wire

_QUEUE = ("T", "b", 3)
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | _TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXTS.filter(lambda key: key != "$ref"), inner),
    max_leaves=15,
)
_KEYS = _TEXTS | st.integers(-(2**63), 2**63) | st.tuples(_TEXTS, _TEXTS, st.integers(-1, 2**31 - 1))


@given(_JSON, st.sampled_from([None, 1]))
def test_json_is_read_as_json(value, indent):
    assert read(json.dumps(value, indent=indent)) == value
    assert read(json.dumps(value, ensure_ascii=False).encode()) == value


@given(st.dictionaries(_KEYS, _JSON, max_size=5))
def test_keys_may_be_integers_and_queues(table):
    assert read(written_as_fastjson({"table": table})) == {"table": table}


@pytest.mark.parametrize("name", NAMES)
def test_every_recorded_body_is_read(name):
    body = recorded(*name.split("/")).body
    if body:
        value = read(body)
        # Each text is written again by a writer that knows the odd forms; only order and spaces may differ.
        assert read(written_as_fastjson(value)) == value
        assert len(written_as_fastjson(value)) == len(body)


@pytest.mark.parametrize("version", VERSIONS)
def test_keys_that_fastjson_writes_bare(version):
    assert read(wire(version)["body-keys"]) == {
        "table": {1: "int", -2: "long", "true": "boolean", "text": "text", _QUEUE: "queue"}
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_numbers_that_fastjson_writes(version):
    assert read(wire(version)["body-numbers"]) == {
        "nan": None,
        "infinity": None,
        "long": -(2**63),
        "double": 1.5e300,
        "float": 1.25,
        "big": 123456789012345678901234567890,
        "decimal": 0.1,
        "byte": -1,
        "whole": 3.0,
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_texts_that_fastjson_writes(version):
    texts = read(wire(version)["body-texts"])
    assert texts["all"] == "".join(map(chr, range(0x180)))
    assert (texts["lines"], texts["emoji"], texts["character"]) == ("\u2028\u2029\ufeff", "😀", "c")


def test_a_reference_is_an_object_like_any_other():
    assert read('{"a":{"$ref":"$"},"b":"$ref"}') == {"a": {"$ref": "$"}, "b": "$ref"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", {}),
        (" [ ] ", []),
        ("{a:1,$b_2:2}", {"a": 1, "$b_2": 2}),
        ("{'a':'it\"s','b\\'':\"'\"}", {"a": 'it"s', "b'": "'"}),
        ("{null:1,true:2}", {"null": 1, "true": 2}),
        ("[1L,2B,3S,1.5F,2D,-0,1e3,1.]", [1, 2, 3, 1.5, 2.0, 0, 1000.0, 1.0]),
        ("[Infinity,-Infinity]", [math.inf, -math.inf]),
        ("undefined", None),
        ('"\\u00e9\\x41\\v\\0\\/"', "éA\x0b\0/"),
        ('"\\ud83d\\ude00 \\ud83d"', "😀 \ufffd"),
        ('{{"a":1,"b":[]}:2}', FastjsonError),
        ('{{"b":1,"a":null}:2}', {(("a", None), ("b", 1)): 2}),
        (
            '{{"topic":"T","brokerName":"b","queueId":"3"}:2}',
            {(("brokerName", "b"), ("queueId", "3"), ("topic", "T")): 2},
        ),
        ('{{{"a":1}:2}:3}', {(((("a", 1),), 2),): 3}),
        ('{{"$ref":"$"}:1}', {(("$ref", "$"),): 1}),
        ("\ufeff{}", {}),
        ('"a\nb\tc"', "a\nb\tc"),
    ],
)
def test_forms_beyond_json(text, expected):
    if expected is FastjsonError:
        with pytest.raises(FastjsonError):
            read(text)
    else:
        assert read(text) == expected


def test_nan_is_read():
    assert math.isnan(read("[NaN]")[0])


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("", 0),
        ("   ", 3),
        ("{", 1),
        ('{"a"', 4),
        ('{"a":', 5),
        ('{"a":1', 6),
        ('{"a" 1}', 5),
        ('{"a":1 "b":2}', 7),
        ('{"a":1,}', 7),
        ("[1,]", 3),
        ("[,1]", 1),
        ("[1 2]", 3),
        ("[1", 2),
        ("[}", 1),
        ("{]", 1),
        ("]", 0),
        (",", 0),
        (":", 0),
        ('{"a"}', 4),
        ("{[1]:2}", 1),
        ('{"a":{}{}}', 7),
        ("1 2", 2),
        ("{} x", 3),
        ("nul", 0),
        ('{"a":b}', 5),
        ("1.2.3", 0),
        ("12abc", 0),
        ("--1", 0),
        ("+1", 0),
        (".5", 0),
        ('"open', 0),
        ('["a\\', 1),
        ('"\\q"', 1),
        ('["\\u12"]', 2),
        ("[\x00]", 1),
    ],
)
def test_errors_name_their_place(text, position):
    with pytest.raises(FastjsonError) as caught:
        read(text)
    assert caught.value.position == position


@pytest.mark.parametrize(
    "text",
    [
        "[" * (fastjson.MAX_DEPTH + 1) + "]" * (fastjson.MAX_DEPTH + 1),
        "[" * 1_000_000,
        '{"a":' * 1_000_000,
        "{" * 1_000_000,
        "{{" * 500_000 + "}}" * 500_000,
        "9" * (fastjson.MAX_NUMBER_LENGTH + 1),
        "[" + "9" * 1_000_000 + "]",
        '"' + "\\" * 999_999,
        '"' + "x" * 1_000_000,
        " " * 1_000_000,
        "'" + "\\'" * 500_000,
        "x" * (fastjson.MAX_BYTES + 1),
    ],
    ids=lambda text: f"{text[:12]}…{len(text)}",
)
def test_limits_end_in_an_error_soon(text):
    with pytest.raises(FastjsonError):
        read(text)


@pytest.mark.parametrize(
    "text",
    [
        "[" * fastjson.MAX_DEPTH + "]" * fastjson.MAX_DEPTH,
        "9" * fastjson.MAX_NUMBER_LENGTH,
        "[" + "1," * 500_000 + "1]",
        '"' + "\\n" * 500_000 + '"',
    ],
    ids=lambda text: f"{text[:12]}…{len(text)}",
)
def test_input_just_within_the_limits_is_read(text):
    assert read(text) is not None


def test_twice_the_text_takes_no_more_than_twice_the_steps():
    # Steps of the reader are tokens; each is found by one match at the place where the last one ended.
    class Counting:
        def __init__(self):
            self.matched = 0

        def match(self, text, position):
            self.matched += 1
            return token.match(text, position)

    token, steps = fastjson._TOKEN, []
    for size in (1_000, 2_000):
        counting = Counting()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fastjson, "_TOKEN", counting)
            read("[" + ",".join(['{"a":{{"topic":"T","brokerName":"b","queueId":3}:[1,"x"]}}'] * size) + "]")
        steps.append(counting.matched)
    assert steps[1] <= 2 * steps[0] + 1


_PIECES = st.sampled_from(
    [
        *("{", "}", "[", "]", ":", ",", '"', "'", "\\", " ", "$ref", '{"$ref":"$"}'),
        *('"a"', "a", "1", "-", ".", "e5", "1L", "NaN", "null", "true", "\\u", "d83d", "\ufeff"),
        *('{"brokerName":"b","queueId":0,"topic":"T"}', '"topic"', '"queueId"', '"brokerName"', "\n", "\0", "é"),
    ]
)


def _value_or_error(data):
    try:
        return read(data)
    except FastjsonError as error:
        assert 0 <= error.position <= len(data)  # noqa: PT017 - either outcome is right
        return None


@given(st.lists(_PIECES, max_size=40).map("".join))
@example('{{"$ref":"$"}:{"$ref":"@"}}')
def test_any_json_fragments_parse_or_raise_one_error_type(text):
    _value_or_error(text)


@given(st.binary(max_size=100))
def test_any_bytes_parse_or_raise_one_error_type(data):
    _value_or_error(data)


@given(st.text(max_size=100))
def test_any_text_parses_or_raises_one_error_type(text):
    _value_or_error(text)


@given(st.sampled_from(NAMES), st.data())
def test_mutated_recordings_parse_or_raise_one_error_type(name, data):
    body = bytearray(recorded(*name.split("/")).body[:3_000])
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(body)))
        piece = data.draw(st.binary(max_size=3) | _PIECES.map(str.encode))
        body[place : place + data.draw(st.integers(0, 20))] = piece
    _value_or_error(bytes(body))
