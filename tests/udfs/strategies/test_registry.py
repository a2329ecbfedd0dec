"""The registry of strategies: names, defaults, promises."""

from collections.abc import Iterator

import pytest

from tests.udfs.strategies.groups import group
from udfs.model.errors import StrategyError
from udfs.model.systems import SYSTEMS
from udfs.strategies import registry
from udfs.strategies.registry import (
    Registered,
    ignores_owned,
    names,
    qualified_name,
    register,
    registered,
    strategy,
)


@pytest.fixture
def restored() -> Iterator[None]:
    """Take away what a test has registered."""
    before = dict(registry._STRATEGIES)
    yield
    registry._STRATEGIES.clear()
    registry._STRATEGIES.update(before)


def test_an_unknown_strategy_is_an_error_by_name() -> None:
    with pytest.raises(StrategyError) as failed:
        strategy("stream", "kafka")
    assert failed.value.code == "unknown_strategy"
    assert "kafka.stream" in failed.value.message


@pytest.mark.parametrize(
    ("name", "system", "qualified"),
    [
        ("range", "kafka", "kafka.range"),
        ("kafka.range", "kafka", "kafka.range"),
        ("kafka.range", "rocketmq", "kafka.range"),
        ("server.uniform", "kafka", "kafka.server.uniform"),
        ("kafkaesque", "kafka", "kafka.kafkaesque"),
        ("com.example.Own", "rocketmq", "rocketmq.com.example.Own"),
        # The wire names of MetaQ's two.
        ("DEFAULT", "metaq", "metaq.default"),
        ("metaq.CONSIST", "metaq", "metaq.consistent-hash"),
    ],
)
def test_a_name_is_qualified_by_its_system_once(name: str, system: str, qualified: str) -> None:
    assert qualified_name(name, system) == qualified


def test_each_system_has_a_default_of_its_own_strategies() -> None:
    for system, profile in SYSTEMS.items():
        assert profile.default_strategy in names()
        assert profile.default_strategy.startswith(f"{system}.")


def test_a_custom_strategy_is_found_by_its_name_and_may_depend_on_what_members_held(restored: None) -> None:
    entry = Registered(answer=lambda _: {})
    register("rocketmq.OWN", entry)
    assert registered("OWN", "rocketmq") is entry
    assert "rocketmq.OWN" in names()
    # It may read what members held, whatever it promises.
    assert not ignores_owned("OWN", "rocketmq")


def test_a_name_is_taken_once(restored: None) -> None:
    for name in ("kafka.range", "rocketmq.OWN"):
        if name not in names():
            register(name, Registered(answer=lambda _: {}))
        with pytest.raises(StrategyError) as failed:
            register(name, Registered(answer=lambda _: {}))
        assert failed.value.code == "name_taken"


@pytest.mark.parametrize(
    ("name", "system", "ignores"),
    [("range", "kafka", True), ("sticky", "kafka", False), ("AVG", "rocketmq", True), ("unknown", "kafka", False)],
)
def test_only_shipped_strategies_without_memory_ignore_what_members_held(name: str, system: str, ignores: bool) -> None:
    assert ignores_owned(name, system) is ignores


def test_nearby_with_its_inner_strategy_in_the_name_keeps_the_promises_of_nearby_and_the_other_settings() -> None:
    entry = registered("MACHINE_ROOM_NEARBY-AVG", "rocketmq")
    nearby = registered("MACHINE_ROOM_NEARBY", "rocketmq")
    assert (entry.spread, entry.complete, entry.any_order) == (nearby.spread, nearby.complete, nearby.any_order)
    settings = {"broker_rooms": {"": "r"}, "member_rooms": {"a": "r"}, "inner": "nothing"}
    problem = group({"a": ["t"]}, {"t": 2}, settings=settings)
    assert [queue.queue_id for queue in entry.answer(problem)["a"]] == [0, 1]
