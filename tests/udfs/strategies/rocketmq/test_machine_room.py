"""Strategies that know machine rooms."""

import pytest

from tests.udfs.strategies.groups import ROOM_IDS, as_text, group, shares_of_two_rooms
from udfs.model.errors import StrategyError
from udfs.strategies.registry import strategy


def test_nearby_has_the_name_that_the_real_class_returns() -> None:
    problem = group({"r1@a": ["t"], "r2@b": ["t"]}, {"t": 3}, broker="r1@x")
    assert as_text(strategy("MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE", "rocketmq")(problem)) == {
        "r1@a": "t-0 t-1 t-2",
        "r2@b": "",
    }


def test_nearby_within_nearby_assigns_as_its_own_inner_strategy() -> None:
    problem = group({"r1@a": ["t"], "r1@b": ["t"], "r2@c": ["t"]}, {"t": 5}, broker="r1@x")
    once, twice = (f"MACHINE_ROOM_NEARBY-{inner}AVG_BY_CIRCLE" for inner in ("", "MACHINE_ROOM_NEARBY-" * 2_000))
    assert as_text(strategy(once, "rocketmq")(problem)) == {"r1@a": "t-0 t-2 t-4", "r1@b": "t-1 t-3", "r2@c": ""}
    assert strategy(twice, "rocketmq")(problem) == strategy(once, "rocketmq")(problem)


def test_nearby_within_itself_has_no_end_and_is_rejected() -> None:
    problem = group({"r1@a": ["t"]}, {"t": 1}, broker="r1@x", settings={"inner": "rocketmq.MACHINE_ROOM_NEARBY"})
    with pytest.raises(StrategyError, match="inner must not be"):
        strategy("MACHINE_ROOM_NEARBY", "rocketmq")(problem)


@pytest.mark.parametrize(
    ("name", "settings", "shares"),
    [
        ("MACHINE_ROOM", {"rooms": ["room1"]}, ["a0 a4", "a1 a5", "a2", "a3"]),
        (
            "MACHINE_ROOM_NEARBY",
            {"member_rooms": dict(zip(ROOM_IDS, ["room1", "room1", "room1", "room3"], strict=True))},
            ["a0 a1 b0 b1", "a2 a3 b2 b3", "a4 a5 b4", "b5"],
        ),
    ],
)
def test_queues_of_two_rooms_are_assigned_as_by_the_real_classes(name: str, settings: dict, shares: list[str]) -> None:
    assert shares_of_two_rooms(strategy(name, "rocketmq"), settings) == shares


def test_a_broker_with_a_name_not_of_two_parts_is_in_no_room() -> None:
    held = {}
    for broker in ("r@b", "r@b@", "@b", "r", "r@", "r@b@c", "s@b"):
        problem = group({"a": ["t"]}, {"t": 1}, broker=broker, settings={"rooms": ["r", ""]})
        held[broker] = bool(strategy("MACHINE_ROOM", "rocketmq")(problem)["a"])
    # Java's split drops empty parts at the end, not at the beginning.
    assert [broker for broker, has_queue in held.items() if has_queue] == ["r@b", "r@b@", "@b"]


def test_without_rooms_the_first_broker_in_a_room_is_an_error_and_others_are_not() -> None:
    problem = group({"a": ["t"]}, {"t": 1}, broker="plain")
    assert as_text(strategy("MACHINE_ROOM", "rocketmq")(problem)) == {"a": ""}
    with pytest.raises(StrategyError) as failed:
        strategy("MACHINE_ROOM", "rocketmq")(group({"a": ["t"]}, {"t": 1}, broker="r@b"))
    assert failed.value.code == "null_pointer"


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"broker_rooms": {"other": "r"}}, "broker 'r@b' of topic 't' is in no room"),
        ({"broker_rooms": {"r@b": ""}}, "broker 'r@b' of topic 't' is in no room"),
        ({"member_rooms": {"other": "r"}}, "member 'r@a' is in no room"),
        ({"member_rooms": {"r@a": ""}}, "member 'r@a' is in no room"),
    ],
)
def test_nearby_rejects_a_name_without_a_room(settings: dict, reason: str) -> None:
    problem = group({"r@a": ["t"]}, {"t": 1}, broker="r@b", settings=settings)
    with pytest.raises(StrategyError, match=reason) as failed:
        strategy("MACHINE_ROOM_NEARBY", "rocketmq")(problem)
    assert failed.value.code == "illegal_argument"


def test_an_inner_strategy_that_fails_does_so_only_where_a_client_of_the_room_subscribes() -> None:
    settings = {"inner": "CONSISTENT_HASH", "virtual_nodes": 10**9}
    away = group({"r@a": [], "s@b": []}, {"t": 1}, broker="r@b", settings=settings)
    assert as_text(strategy("MACHINE_ROOM_NEARBY", "rocketmq")(away)) == {"r@a": "", "s@b": ""}
    elsewhere = group({"r@a": [], "s@b": ["t"]}, {"t": 1}, broker="r@b", settings=settings)
    assert as_text(strategy("MACHINE_ROOM_NEARBY", "rocketmq")(elsewhere)) == {"r@a": "", "s@b": ""}
    there = group({"r@a": ["t"], "s@b": []}, {"t": 1}, broker="r@b", settings=settings)
    with pytest.raises(StrategyError, match="virtual_nodes"):
        strategy("MACHINE_ROOM_NEARBY", "rocketmq")(there)
