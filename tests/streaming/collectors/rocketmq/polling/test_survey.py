"""The result of one round: its evidence, and its gaps."""

from __future__ import annotations

import pytest

from streaming.collectors.rocketmq.polling.survey import ObservedGroup, Survey
from tests.streaming.collectors.rocketmq.surveys import broker, connections


@pytest.mark.parametrize(
    ("more", "is_evidence"), [({}, True), ({"problem": "away"}, False), ({"is_steady": False}, False)]
)
def test_a_broker_that_answered_as_one_process_is_evidence(more: dict[str, object], is_evidence: bool) -> None:
    assert broker("a", **more).is_evidence is is_evidence


def test_a_round_in_which_one_broker_answered_is_evidence() -> None:
    away, there = broker("a", problem="away"), broker("b", is_steady=False)
    assert not Survey(began_ms=1).is_evidence
    assert not Survey(began_ms=1, brokers={"a": away}).is_evidence
    assert Survey(began_ms=1, brokers={"a": away, "b": there}).is_evidence


def test_a_group_has_the_members_and_the_newest_subscription_of_any_broker() -> None:
    lists = {
        "a": connections(["c1", "c2"], sub_version=5),
        "b": connections([("c2", "h:2"), "c3"], sub_version=9),
        "c": None,
    }
    group = ObservedGroup(lists=lists)
    assert (group.client_ids(), group.sub_version()) == ({"c1", "c2", "c3"}, 9)
    assert (ObservedGroup().client_ids(), ObservedGroup(lists={"a": None}).sub_version()) == (set(), 0)


def test_groups_that_some_broker_was_not_polled_for_are_counted() -> None:
    groups = {"g": ObservedGroup(unpolled={"a", "b"}), "h": ObservedGroup(), "i": ObservedGroup(unpolled={"a"})}
    assert Survey(began_ms=1, groups=groups).unpolled() == 2
