"""Up to when a queue was read, by what its source shows."""

from __future__ import annotations

from tests.udfs.group.state.test_view import view as view_of
from udfs.group.assignment.client_timings import COMMIT_INTERVAL_MS
from udfs.group.assignment.last_progress import LastProgress, last_progress
from udfs.group.state.group import Group
from udfs.model.observations import ReadOffsets
from udfs.packets.packet import queue_key

QUEUE = ("t", "a", 0)
KEY = queue_key(*QUEUE)


def test_polled_commits_are_older_than_their_polls_and_a_pull_is_reading_itself() -> None:
    offsets = ReadOffsets({KEY: [(10_000, 100, -1, -1), (15_000, 200, -1, -1)]})
    view = view_of(Group(), system="rocketmq", offsets=offsets)
    assert last_progress(view, QUEUE, KEY, 20_000, 20_000) == LastProgress(10_000 - COMMIT_INTERVAL_MS)
    pulled = view_of(Group(pulls={QUEUE: 14_000}), system="rocketmq", offsets=offsets)
    assert last_progress(pulled, QUEUE, KEY, 20_000, 20_000) == LastProgress(14_000)
    still = ReadOffsets({KEY: [(10_000, 200, -1, -1), (15_000, 200, -1, -1)]})
    assert last_progress(view_of(Group(), system="rocketmq", offsets=still), QUEUE, KEY, 20_000, 20_000).read_at is None


def test_commits_of_the_next_owner_are_not_the_former_owners() -> None:
    commits = [(1_000, 100, -1, -1), (5_000, 200, -1, -1)]
    view = view_of(Group(), offsets=ReadOffsets({KEY: commits}))
    assert last_progress(view, QUEUE, KEY, 4_000, 9_000) == LastProgress(1_000)
    assert last_progress(view, QUEUE, KEY, 900, 9_000) == LastProgress()
