"""Routes that a round polls: changed ones by brokers' word, doubtful ones, and the others in turn."""

from __future__ import annotations

from streaming.collectors.rocketmq.polling.route_schedule import RouteSchedule
from streaming.collectors.rocketmq.polling.survey import ObservedBroker
from tests.streaming.collectors.rocketmq.surveys import broker, config, route


def due(
    schedule: RouteSchedule,
    brokers: dict[str, ObservedBroker],
    doubted: tuple[str, ...] = (),
    deleted: tuple[str, ...] = (),
) -> list[str]:
    """Return the routes that are requested beside the next one in turn."""
    return schedule.next_topics(["t"], doubted, brokers, deleted, everything=False)


class Never(RouteSchedule):
    """Requests for nothing in turn."""

    def __init__(self) -> None:
        super().__init__(0.0)


def polled(count: int = 5) -> tuple[RouteSchedule, dict[str, ObservedBroker]]:
    """Make a schedule that has seen a topic with this many queues."""
    schedule, brokers = Never(), {"a": broker("a", topics=config("t", count))}
    schedule.observe("t", route("t", {"a": count}), brokers, (), 1)
    return schedule, brokers


def test_a_topic_is_requested_when_it_is_new_and_then_only_when_its_broker_reports_a_change() -> None:
    brokers = {"a": broker("a", topics=config("t", 5))}
    assert due(Never(), brokers) == ["t"]
    assert Never().never_polled(["t"]) == {"t"}
    schedule, brokers = polled()
    assert due(schedule, brokers) == []
    assert due(schedule, {"a": broker("a", topics=config("t", 7))}) == ["t"]
    assert due(schedule, {"a": broker("a", topics=config("t", 5, perm=2))}) == ["t"]
    assert due(schedule, {"a": broker("a")}) == ["t"]
    assert schedule.never_polled(["t"]) == set()


def test_a_route_that_differs_from_its_broker_is_requested_again() -> None:
    schedule, brokers = polled()
    for wrong in (None, route("t", {"a": 4}), route("t", {"b": 5})):
        schedule.observe("t", wrong, brokers, (), 2)
        assert due(schedule, brokers) == ["t"]
    schedule.observe("t", route("t", {"a": 5}), brokers, (), 3)
    assert due(schedule, brokers) == []


def test_doubtful_routes_are_requested_again() -> None:
    schedule, brokers = polled()
    assert due(schedule, brokers, doubted=("t",)) == ["t"]


def test_a_broker_makes_its_topics_due_when_it_is_away_missing_and_back() -> None:
    schedule, brokers = polled()
    away = {"a": broker("a", problem="x")}
    assert due(schedule, away) == ["t"]
    schedule.observe("t", None, away, (), 2)
    assert due(schedule, away) == []
    assert due(schedule, away, deleted=("a",)) == ["t"]
    schedule.observe("t", None, away, ("a",), 3)
    assert due(schedule, away, deleted=("a",)) == []
    assert due(schedule, brokers) == ["t"]


def test_an_unavailable_broker_without_the_topic_does_not_make_it_due() -> None:
    schedule, brokers = polled()
    assert due(schedule, {**brokers, "b": broker("b", problem="x")}) == []


def test_all_topics_are_requested_one_after_another_the_oldest_first() -> None:
    schedule, brokers = RouteSchedule(0.25), {"a": broker("a")}
    names = [f"t{number}" for number in range(8)]
    requested: list[str] = []
    for now_ms in range(5):
        for name in schedule.next_topics(names, (), brokers, (), everything=False):
            schedule.observe(name, None, brokers, (), now_ms)
            requested.append(name)
    assert requested == [*names, *names]
    assert schedule.next_topics(names, (), brokers, (), everything=True) == names
