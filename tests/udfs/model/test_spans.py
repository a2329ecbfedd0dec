"""Spans in the journal: what earlier releases wrote is read, and what is not known takes no room."""

from __future__ import annotations

import json

import msgspec

from udfs.model.spans import AssignedRun, QueueAssigned, QueueCost, QueuesReassigned, ReassignedTopic, ReleasedRun


def test_runs_that_were_written_before_there_were_pauses_and_costs_are_read() -> None:
    written = {"kind": "queues_reassigned", "origin": "computed", "at": 5, "generation": 2, "rebalance_id": "r"}
    topics = [["t", None, [[0, 3]], [[0, 1, 0], [2, 3, None, 2]]]]
    body = msgspec.json.decode(
        json.dumps(written | {"members": [["a", None]], "topics": topics}), type=QueuesReassigned
    )
    [topic] = body.topics
    assert topic.released == [ReleasedRun(0, 3, None)]
    assert topic.assigned == [AssignedRun(0, 1, 0, 0, None, None), AssignedRun(2, 3, None, 2, None, None)]
    assert (topic.inferred, topic.costs) == (False, [])


def test_topics_do_not_share_their_costs() -> None:
    one, other = ReassignedTopic("t", None, [], []), ReassignedTopic("t", None, [], [])
    one.costs.append(QueueCost(0, 5))
    assert other.costs == []


def test_a_span_of_an_earlier_journal_has_no_pause_and_no_costs() -> None:
    written = {"kind": "queue_assigned", "topic": "t", "broker": None, "queue_id": 0, "member_id": "a"}
    more = {"origin": "reported", "generation": 1, "rebalance_id": "r", "valid_from": 5}
    span = msgspec.json.decode(json.dumps(written | more), type=QueueAssigned)
    assert (span.instance_id, span.inferred, span.pause_ms, span.waiting_messages) == (None, False, None, None)
