"""Events as lines: of the contract, in both notations."""

from __future__ import annotations

import json

import pytest

from streaming.simulator import Fleet
from streaming.simulator.serializer import line
from streaming.simulator.timeline import Delivery
from tests.core_config import core_config
from tests.streaming.simulator.lives import TEN_MINUTES_MS
from udfs.ingest.parser import parse
from udfs.model.events import Clock, GroupSnapshot, MemberLeft
from udfs.model.rejection import Rejection


def test_every_line_is_an_event_of_the_contract(life: tuple[Fleet, list[Delivery]]) -> None:
    fleet, deliveries = life
    later = fleet.start_ms + 2 * TEN_MINUTES_MS
    outcomes = [parse(line(delivery), later, core_config()) for delivery in deliveries]
    assert [outcome for outcome in outcomes if isinstance(outcome, Rejection)] == []


def test_both_notations_have_the_same_meaning(life: tuple[Fleet, list[Delivery]]) -> None:
    _, deliveries = life
    for delivery in deliveries[:500]:
        lines = [
            parse(line(Delivery(0, delivery.event, otherwise)), delivery.event.event_time, core_config())
            for otherwise in (True, False)
        ]
        assert lines[0] == lines[1]


PLAIN = {"schema_version": 1, "system": "kafka", "cluster": "c"}


def test_fields_without_a_value_are_left_out_and_an_empty_group_has_no_members() -> None:
    empty = GroupSnapshot(**PLAIN, event_time=5, group="g", generation=2)
    assert json.loads(line(Delivery(0, empty))) == {
        **PLAIN,
        "type": "group_snapshot",
        "event_time": 5,
        "group": "g",
        "generation": 2,
        "members": [],
    }


def test_the_other_notation_has_other_times_and_another_order() -> None:
    left = MemberLeft(**PLAIN, event_time=1_767_225_600_007, group="g", member_id="a", event_id="e-1")
    written = json.loads(line(Delivery(0, left, otherwise_written=True)))
    assert written["event_time"] == "2026-01-01T00:00:00.007Z"
    assert list(written) == sorted(written, reverse=True)


def test_an_envelope_takes_the_id_of_its_event_and_only_of_one_that_has_one() -> None:
    left = MemberLeft(**PLAIN, event_time=5, group="g", member_id="a", event_id="e-1")
    envelope = json.loads(line(Delivery(0, left, envelope="/collectors/c")))
    assert (envelope["id"], envelope["source"], envelope["type"]) == ("e-1", "/collectors/c", "rebalance.member_left")
    assert "event_id" not in envelope["data"]
    bare = json.loads(line(Delivery(0, Clock(**PLAIN, event_time=5), envelope="/collectors/c")))
    assert bare["type"] == "clock"


def test_only_events_are_written() -> None:
    with pytest.raises(TypeError, match="int is not an event"):
        line(Delivery(0, 5))  # type: ignore[arg-type]
