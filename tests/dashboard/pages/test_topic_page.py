"""The page of a topic: its readers, its queues, and what to do next."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from dashboard.pages.topic_page import QueueName, next_steps, topic_page
from dashboard.reading.listing_query import BadQuestionError
from dashboard.reading.questions import Reading
from dashboard.reading.time_range import TimeRange
from dashboard.reading.topic_detail import TopicDetail
from streaming.tables.errors import NotFoundError
from streaming.tables.schema import Row
from tests.streaming.tables.journals import T0


def test_a_topic_has_its_readers_and_queues(reading: Reading) -> None:
    found = topic_page(reading, "c1", "orders", TimeRange(T0, T0 + 60_000), QueueName())
    assert [row["group_id"] for row in found["groups"]] == ["orders"]
    assert [row["queue"] for row in found["commits"]] == ["orders-1"]
    assert {row["queue"]: row["readers"] for row in found["queues"]}["orders-1"] == ["orders"]


def test_one_queue_restricts_the_tables(reading: Reading) -> None:
    found = topic_page(reading, "c1", "orders", TimeRange(T0, T0 + 60_000), QueueName(number="1"))
    assert {row["queue"] for row in (*found["queues"], *found["commits"])} == {"orders-1"}


@pytest.mark.parametrize("number", ["x", "-1", "1" * 10])
def test_what_is_no_queue_is_refused(reading: Reading, number: str) -> None:
    with pytest.raises(BadQuestionError, match="no number of a queue"):
        topic_page(reading, "c1", "orders", TimeRange(T0, T0 + 60_000), QueueName(number=number))


def test_a_topic_that_nobody_knows_is_not_found(reading: Reading, client: TestClient) -> None:
    with pytest.raises(NotFoundError):
        topic_page(reading, "c1", "none", TimeRange(T0, T0 + 60_000), QueueName())
    assert client.get("/topic?cluster=c1&topic=none").status_code == 404


def _group(name: str, lag: int | None, unowned: tuple[str, ...] = ()) -> Row:
    return {"group_id": name, "lag": lag, "unowned": list(unowned)}


@pytest.mark.parametrize(
    ("groups", "advice", "steps"),
    [
        ([], (), ["No group is known to read it"]),
        ([_group("g", 0)], (), []),
        ([_group("g", None)], (), []),
        ([_group("g", 3), _group("h", 9)], (), ["h is furthest behind, by 9 messages"]),
        ([_group("g", 0, ("t-1",))], (), ["Without an owner in g: 1 queue"]),
        ([_group("g", 1)], ("Look there.",), ["Look there.", "g is furthest behind"]),
    ],
)
def test_what_to_do_next_follows_from_what_is_known(
    groups: list[Row], advice: tuple[str, ...], steps: list[str]
) -> None:
    findings: list[Row] = [{"closed_at": None, "advice": text} for text in advice]
    findings.append({"closed_at": T0, "advice": "It is over."})
    found = next_steps(TopicDetail([], groups, [], [], findings), "c")
    assert len(found) == len(steps)
    assert all(text in step.text for text, step in zip(steps, found, strict=True))
