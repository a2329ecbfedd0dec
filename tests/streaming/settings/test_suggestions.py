"""An unknown name gets a suggestion of the name that was meant."""

from __future__ import annotations

import time

import pytest

from streaming.settings.suggestions import closest, did_you_mean


@pytest.mark.parametrize(
    ("text", "names", "suggested"),
    [
        ("AVG", ["rocketmq.AVG", "rocketmq.AVG_BY_CIRCLE"], ["rocketmq.AVG"]),
        ("avg", ["rocketmq.AVG"], ["rocketmq.AVG"]),
        ("rocketmq.avg", ["rocketmq.AVG"], ["rocketmq.AVG"]),
        ("RocketMQ.AVGG", ["rocketmq.AVG"], ["rocketmq.AVG"]),
        ("order", ["orders", "orders-audit", "payments"], ["orders", "orders-audit"]),
        ("ordres", ["orders", "payments"], ["orders"]),
        ("billing", ["orders", "payments"], []),
        ("", ["orders"], []),
        ("t", ["t1", "t2", "topic"], []),
        ("x", [], []),
    ],
)
def test_names_that_are_close_are_suggested(text: str, names: list[str], suggested: list[str]) -> None:
    assert closest(text, names) == suggested


def test_several_are_joined_and_none_is_nothing() -> None:
    assert did_you_mean("order", ["orders", "order2"]) == "; did you mean orders or order2?"
    assert did_you_mean("billing", ["orders"]) == ""


def test_among_very_many_names_those_that_contain_the_text_are_suggested_quickly() -> None:
    names = [f"group-{number:06d}" for number in range(100_000)]
    begun = time.monotonic()
    assert closest("p-00007", names) == ["group-000070", "group-000071", "group-000072"]
    assert closest("gruop-000007", names) == []
    assert time.monotonic() - begun < 5
