"""The owners of one queue, now or at a time."""

from __future__ import annotations

from dashboard.reading.questions import Reading
from dashboard.reading.queue_owners import owners_of_queue, spans_dropped_before
from tests.streaming.tables.journals import T0


def test_an_owner_of_a_time_has_its_client_and_host(reading: Reading) -> None:
    (owner,) = owners_of_queue(reading, "orders", 0, at_ms=T0 + 69_999)
    assert [owner[name] for name in ("member_id", "client_id", "host", "instance_id")] == [
        "a",
        "app-a",
        "h1",
        "static-a",
    ]
    assert owners_of_queue(reading, "orders", 0, at_ms=T0 - 1) == []


def test_owners_are_chosen_by_group_and_broker_and_share_a_topic_by_message(reading: Reading) -> None:
    (owner,) = owners_of_queue(reading, "events", 5, broker="broker-a")
    assert (owner["member_id"], owner["queue_id"], owner["host"]) == ("pop", -1, None)
    assert owners_of_queue(reading, "events", 5, broker="broker-b") == []
    assert owners_of_queue(reading, "events", 5, group="orders") == []
    assert owners_of_queue(reading, "events", 5, cluster="c1") == []


def test_no_dropped_spans_are_named_if_none_were_dropped(reading: Reading) -> None:
    assert spans_dropped_before(reading.tables, None, T0) == []
