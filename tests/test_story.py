"""The story of a history: each event, and what the core decided because of it."""

from __future__ import annotations

import json

from tests.story import story

T0 = 1_772_323_200_000


def event(at: int, kind: str, **fields: object) -> bytes:
    common = {"schema_version": 1, "event_time": T0 + at, "system": "kafka", "cluster": "c", "type": kind}
    return json.dumps(common | fields).encode()


def test_a_decision_is_shown_below_the_event_that_let_the_clock_pass_it_with_its_causes():
    joined = {"group": "g", "subscriptions": ["t"], "session_timeout_ms": 10_000}
    lines = list(
        story(
            [
                event(20_000, "clock"),
                event(0, "topic_queues", topic="t", queue_count=2),
                event(1_000, "member_joined", member_id="a", **joined),
            ]
        )
    )
    rebalances = [line for line in lines if line.startswith("REBALANCE")]
    assert [line.split(" members ")[1][:6] for line in rebalances] == ["0 to 1", "1 to 0"]
    expiry = lines.index(rebalances[1])
    assert lines[expiry + 1] == "  because  session_expired a"
    assert lines.index(next(line for line in lines if " c clock " in line)) < lines.index(rebalances[0])


def test_unreadable_input_is_shown_with_its_reason():
    assert [line for line in story([b"{"]) if "rejected" in line] == [
        "  rejected truncated_json: the text ends inside the object"
    ]


def test_an_empty_history_has_an_end_and_nothing_else():
    assert list(story([])) == ["the end    the clock passes the newest event"]
