"""Settings of strategies: absent, of the right type, of another."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest

from udfs.model.errors import StrategyError
from udfs.model.events import QueueRef
from udfs.strategies.settings import queue_lists, text, text_map, texts, whole_number

QUEUE = {"topic": "t", "queue_id": 1, "broker": "b"}
_number = partial(whole_number, default=7)
_text = partial(text, default="x")
REF = QueueRef(topic="t", queue_id=1, broker="b")


@pytest.mark.parametrize("settings", [{}, {"n": None}])
def test_absent_and_null_values_are_the_default(settings: dict[str, object]) -> None:
    assert whole_number(settings, "n", 7) == 7
    assert text(settings, "n", "x") == "x"
    assert [read(settings, "n") for read in (texts, text_map, queue_lists)] == [None, None, None]


@pytest.mark.parametrize(
    ("read", "value", "result"),
    [
        (_number, 0, 0),
        (_text, "", ""),
        (texts, [], []),
        (texts, ("a", "b"), ["a", "b"]),
        (text_map, {}, {}),
        # The real class does not find what is no text.
        (text_map, {"a": "r", "b": 5, "c": None}, {"a": "r"}),
        (queue_lists, [QUEUE], [REF]),
        (queue_lists, {"a": [QUEUE], "b": None, "c": []}, {"a": [REF], "c": []}),
    ],
)
def test_a_value_of_the_right_type_is_taken_as_it_is(
    read: Callable[[Mapping[str, object], str], Any], value: object, result: object
) -> None:
    assert read({"s": value}, "s") == result


@pytest.mark.parametrize(
    ("read", "value", "wanted"),
    [
        *((_number, value, "a whole number") for value in (True, 1.0, "1")),
        (_text, 5, "a text"),
        *((texts, value, "a list of texts") for value in ("abc", 5, ["a", 5], {"a": "b"})),
        *((text_map, value, "an object of texts") for value in (["a"], "a", 5)),
        *(
            (queue_lists, value, "a list of queues, or an object of such lists by member")
            for value in (5, [{"topic": "t"}], [{"queue_id": 1, "topic": 5}], {"a": 5}, {"a": [{"queue_id": 1}]})
        ),
    ],
)
def test_a_value_of_another_type_is_an_error_that_names_the_setting_and_the_type(
    read: Callable[[Mapping[str, object], str], Any], value: object, wanted: str
) -> None:
    with pytest.raises(StrategyError) as failed:
        read({"s": value}, "s")
    assert failed.value.code == "illegal_setting"
    assert failed.value.message == f"s must be {wanted}, not {value!r}"


def test_the_message_stays_short_however_large_the_value_is() -> None:
    with pytest.raises(StrategyError) as failed:
        texts({"s": "x" * 10**6}, "s")
    assert len(failed.value.message) < 150
