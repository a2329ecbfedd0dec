"""How far a group has come: offsets of each queue beside its owner; lag that cannot be relied on says so."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.schema import ASSIGNMENTS, QUEUE_PROGRESS, TOPICS, Table
from streaming.tables.writer import Mark
from streaming.views.progress import progress
from streaming.views.reader import Reader
from udfs.model.journal import TOPOLOGY_NOT_READY

T0 = 1_700_000_000_000
GROUP = {"cluster": "c", "group_id": "g", "state": "stable"}
MEMBERS = [{"member_id": "a", "host": "/10.0.0.1", "client_id": "app"}]


def write(root: Path, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    place = {"cluster": "c", "group_id": "g", "topic": "t"}
    here = {name: value for name, value in place.items() if name in table.names}
    full = [dict.fromkeys(table.names) | here | row for row in rows]
    DeltaRsTable(root, table).append(to_arrow(table, full), Mark(f"{table.name}-{rows[0]}", 0))


def span(queue: int, since: int, member: str = "a", origin: str = "reported") -> dict[str, Any]:
    return {"queue_id": queue, "member_id": member, "origin": origin, "valid_from": T0 + since}


def moved(queue: int, at: int, committed: int | None, end: int | None, **fields: Any) -> dict[str, Any]:
    return {
        "queue_id": queue,
        "event_time": T0 + at,
        "committed_offset": committed,
        "committed_at": None if committed is None else T0 + at + 5,
        "end_offset": end,
        "end_at": None if end is None else T0 + at + 6,
        "lag": None if committed is None or end is None else end - committed,
        **fields,
    }


def lines(root: Path, group: dict[str, Any] = GROUP, members: list[dict[str, Any]] = MEMBERS) -> list[tuple[Any, ...]]:
    names = ("queue_id", "committed_offset", "end_offset", "lag", "lag_reliable", "member_id", "client_id")
    return [tuple(row[name] for name in names) for row in progress(Reader(root), group, members)]


def test_while_a_group_reconciles_owners_are_those_that_its_row_lists(tmp_path: Path) -> None:
    write(tmp_path, ASSIGNMENTS, [span(0, 0, "gone"), span(1, 0)])
    write(tmp_path, QUEUE_PROGRESS, [moved(0, 10, 5, 9)])
    held = {"assigned": [{"topic": "t", "queue_ids": [1]}], "revoking": [{"topic": "t", "queue_ids": [0]}]}
    group = GROUP | {"state": "reconciling", "protocol": "consumer", "generation": 2, "epoch": 3}
    group |= {"reconciling": [{"member_id": "a", **held}]}
    assert lines(tmp_path, group) == [(0, 5, 9, 4, False, "a", "app"), (1, None, None, None, None, "a", "app")]
    former = lines(tmp_path, group | {"reconciling": None})
    assert [line[5:] for line in former] == [("gone", None), ("a", "app")]


def test_an_end_that_is_older_than_the_commit_is_no_end(tmp_path: Path) -> None:
    write(tmp_path, ASSIGNMENTS, [span(0, 0), span(1, 0), span(2, 0)])
    rows = [moved(0, 10, 5_946, 5_903, lag=0), moved(1, 10, 5_903, 5_903), moved(2, 10, 5_946, 5_903, lag=None)]
    write(tmp_path, QUEUE_PROGRESS, rows)
    assert [line[3:5] for line in lines(tmp_path)] == [(None, False), (0, True), (None, False)]


def test_queues_of_the_members_topics_that_nobody_owns_or_has_committed_are_listed(tmp_path: Path) -> None:
    write(tmp_path, ASSIGNMENTS, [span(0, 0)])
    write(tmp_path, QUEUE_PROGRESS, [moved(0, 10, 5, 9)])
    queues = [{"broker": "1", "queue_id": number, "racks": None} for number in range(3)]
    write(tmp_path, TOPICS, [{"topic": "t", "queue_count": 3, "queues": queues, "valid_from": T0}])
    members = [{**MEMBERS[0], "subscriptions": ["t"]}]
    found = lines(tmp_path, GROUP | {"system": "kafka"}, members)
    assert [(line[0], line[1], line[5]) for line in found] == [(0, 5, "a"), (1, None, None), (2, None, None)]
    found = lines(tmp_path, GROUP | {"system": "rocketmq"}, members)
    assert len(found) == 4  # of RocketMQ a queue of a broker is another one


def test_each_queue_has_its_newest_offsets_and_its_owner(tmp_path: Path) -> None:
    write(tmp_path, ASSIGNMENTS, [span(0, 0), span(1, 0), span(0, 0, "b", "computed")])
    write(tmp_path, QUEUE_PROGRESS, [moved(0, 10, 5, 9), moved(0, 70_000, 8, 20), moved(2, 70_000, 3, None)])
    assert lines(tmp_path) == [
        (0, 8, 20, 12, True, "a", "app"),
        (1, None, None, None, None, "a", "app"),
        (2, 3, None, None, None, None, None),
    ]


def test_the_queue_of_a_deleted_commit_is_listed_only_while_a_member_owns_it(tmp_path: Path) -> None:
    write(tmp_path, ASSIGNMENTS, [span(0, 0)])
    rows = [moved(0, 10, 5, 9), moved(1, 10, 3, 4), moved(0, 70_000, None, None), moved(1, 70_000, None, None)]
    write(tmp_path, QUEUE_PROGRESS, rows)
    assert lines(tmp_path) == [(0, None, None, None, None, "a", "app")]


def test_commits_of_topics_to_which_no_member_subscribes_are_left_over(tmp_path: Path) -> None:
    write(tmp_path, QUEUE_PROGRESS, [moved(0, 10, 5, 9), moved(1, 10, 3, 4, topic="former")])

    def marks(members: list[dict[str, Any]], **of_group: Any) -> list[bool | None]:
        return [row["is_left_over"] for row in progress(Reader(tmp_path), GROUP | of_group, members)]

    subscribed = {**MEMBERS[0], "subscriptions": ["t"]}
    assert marks([subscribed]) == [True, False]  # by topic
    assert marks([subscribed, {**MEMBERS[0], "member_id": "b", "subscriptions": None}]) == [None, None]
    assert marks([]) == [None, None]
    assert marks([subscribed], protocol="streams") == [None, None]


def test_a_queue_that_has_not_moved_for_long_is_found(tmp_path: Path) -> None:
    write(tmp_path, ASSIGNMENTS, [span(0, 0), span(1, 0)])
    write(tmp_path, QUEUE_PROGRESS, [moved(1, 0, 4, 4), moved(0, 10**8, 8, 20)])
    assert lines(tmp_path) == [(0, 8, 20, 12, True, "a", "app"), (1, 4, 4, 0, True, "a", "app")]


HOURS = 3_600_000


def test_a_group_without_members_has_all_queues_however_long_they_have_not_moved(tmp_path: Path) -> None:
    rows = [moved(1, 0, 4, 40), moved(2, 0, 7, 70), moved(2, -60_000, 6, 99), moved(0, 2 * HOURS, 8, 20)]
    write(tmp_path, QUEUE_PROGRESS, rows)
    assert lines(tmp_path, {**GROUP, "state": "empty"}, []) == [
        (0, 8, 20, 12, True, None, None),
        (1, 4, 40, 36, True, None, None),
        (2, 7, 70, 63, True, None, None),
    ]


def test_a_queue_that_no_member_owns_any_more_is_listed_however_long_it_has_not_moved(tmp_path: Path) -> None:
    write(tmp_path, ASSIGNMENTS, [span(0, 0)])
    write(tmp_path, QUEUE_PROGRESS, [moved(1, 0, 4, 40), moved(0, 2 * HOURS, 8, 20)])
    assert lines(tmp_path) == [(0, 8, 20, 12, True, "a", "app"), (1, 4, 40, 36, False, None, None)]


def test_the_newest_row_is_found_in_whichever_file_it_is(tmp_path: Path) -> None:
    queues = [(topic, broker, queue) for topic in ("s", "t") for broker in (None, "b", "c") for queue in range(3)]
    ages = dict(zip(queues, random.Random(7).sample(range(100), len(queues)), strict=True))
    for part in range(4):
        rows = [
            moved(queue, 60_000 * (ages[topic, broker, queue] - back), 50 - back, 60, topic=topic, broker=broker)
            for topic, broker, queue in queues
            for back in range(part, 40, 4)
        ]
        write(tmp_path, QUEUE_PROGRESS, random.Random(part).sample(rows, len(rows)))
    found = progress(Reader(tmp_path), {**GROUP, "state": "empty"}, [])
    assert [(row["topic"], row["broker"], row["queue_id"]) for row in found] == queues
    assert {row["committed_offset"] for row in found} == {50}


class Watched(Reader):
    """Counts the rows of ``queue_progress`` that are read."""

    read_rows = 0

    def blocks(self, name: str, **more: Any) -> Iterator[pa.Table]:
        for block in super().blocks(name, **more):
            self.read_rows += block.num_rows if name == "queue_progress" else 0
            yield block


@pytest.mark.parametrize(
    ("why", "topics", "read_rows"),
    [
        ("the topic has two queues, and both moved within the hour", [("t", "1", 2)], 2),
        ("a queue of it did not move", [("t", "1", 3)], 6),
        ("how many queues it has is not known", [], 6),
        ("it was deleted", [("t", "1", 0)], 6),
    ],
)
def test_older_rows_are_read_only_for_topics_with_a_queue_that_has_not_moved(
    tmp_path: Path, why: str, topics: list[tuple[str, str, int]], read_rows: int
) -> None:
    write(tmp_path, QUEUE_PROGRESS, [moved(queue, at, 9, 9) for at in (0, 60_000, 2 * HOURS) for queue in (0, 1)])
    for topic, broker, count in topics:
        queues = [{"broker": broker, "queue_id": queue, "racks": []} for queue in range(count)]
        write(tmp_path, TOPICS, [{"topic": topic, "queue_count": count, "queues": queues, "valid_from": T0}])
    reader = Watched(tmp_path)
    found = progress(reader, {**GROUP, "state": "empty"}, [])
    assert ([row["queue_id"] for row in found], reader.read_rows) == ([0, 1], read_rows), why


def test_the_row_of_a_span_that_was_observed_last_counts(tmp_path: Path) -> None:
    before = moved(0, 0, None, 9) | {"committed_offset": 1}
    write(tmp_path, QUEUE_PROGRESS, [moved(0, 0, 3, 9), before, moved(0, 0, 2, 9) | {"committed_at": T0 + 4}])
    assert lines(tmp_path, {**GROUP, "state": "empty"}, []) == [(0, 3, 9, 6, True, None, None)]


def test_reading_imports_no_pandas(tmp_path: Path) -> None:
    write(tmp_path, QUEUE_PROGRESS, [moved(0, 0, 3, 9)])
    imports = "import sys; from pathlib import Path; from streaming.views.reader import Reader"
    imports += "; from streaming.views.progress import progress"
    reads = f"rows = progress(Reader(Path({str(tmp_path)!r})), {GROUP!r}, [])"
    script = f"{imports}; {reads}; print(len(rows), 'pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "1 False\n"


@pytest.mark.parametrize(
    ("why", "group", "spans", "reliable"),
    [
        ("its owner has committed", GROUP, [span(0, 1_015)], True),
        ("its owner has not committed yet", GROUP, [span(0, 1_016)], False),
        ("nobody holds it", GROUP, [span(1, 0)], False),
        ("members share messages", {**GROUP, "mode": "message"}, [span(-1, 2_000)], True),
        ("the group rebalances", {**GROUP, "state": "preparing_rebalance"}, [span(0, 0)], False),
    ],
)
def test_lag_is_not_reliable_while_a_queue_moves(
    tmp_path: Path, why: str, group: dict[str, Any], spans: list[dict[str, Any]], reliable: bool
) -> None:
    write(tmp_path, ASSIGNMENTS, spans)
    write(tmp_path, QUEUE_PROGRESS, [moved(0, 1_010, 5, 9)])
    assert lines(tmp_path, group)[0][4] == reliable, why


def test_a_group_without_members_has_a_reliable_lag(tmp_path: Path) -> None:
    write(tmp_path, QUEUE_PROGRESS, [moved(0, 10, 5, 9)])
    assert lines(tmp_path, {**GROUP, "state": "empty"}, []) == [(0, 5, 9, 4, True, None, None)]


def test_tables_without_progress_show_the_owners(tmp_path: Path) -> None:
    write(tmp_path, ASSIGNMENTS, [span(0, 0)])
    assert lines(tmp_path) == [(0, None, None, None, None, "a", "app")]


STREAMS = GROUP | {"state": "not_followed", "protocol": "streams", "generation": 2, "epoch": 2, "assignment_epoch": 2}


@pytest.mark.parametrize(
    ("why", "more", "reliable"),
    [
        ("it is stable", {}, True),
        ("it reconciles", {"waits": "a has yet to revoke subtopology 0-1"}, False),
        ("it is between two epochs", {"epoch": 3}, False),
        ("no member gets a task", {"waits": TOPOLOGY_NOT_READY}, False),
        ("its members are gone", {"members": 0}, True),
    ],
)
def test_offsets_of_a_streams_group_have_no_owner_and_a_reliable_lag_while_it_is_stable(
    tmp_path: Path, why: str, more: dict[str, Any], reliable: bool
) -> None:
    tasks = [span(0, 2_000) | {"topic": topic} for topic in ("subtopology 0", "subtopology 0 (standby)")]
    write(tmp_path, ASSIGNMENTS, tasks)
    write(tmp_path, QUEUE_PROGRESS, [moved(0, 1_000, 29, 49)])
    assert lines(tmp_path, STREAMS | {"members": 1, "waits": None} | more) == [(0, 29, 49, 20, reliable, None, None)], (
        why
    )


def _ages(root: Path) -> list[tuple[Any, ...]]:
    names = ("queue_id", "lag_ms", "lag_min_ms", "lag_max_ms", "lag_source")
    return [tuple(row[name] for name in names) for row in progress(Reader(root), GROUP, MEMBERS)]


def test_the_next_unread_message_is_as_old_as_the_end_that_passed_the_commit(tmp_path: Path) -> None:
    minute = 60_000
    rows = [moved(0, at * minute, 100, 100 + 60 * at) for at in range(11)]  # a message a second, none of them read
    rows += [moved(1, at * minute, 60 * at, 60 * at) for at in range(11)]  # caught up
    rows += [moved(2, at * minute, 100, 500 + at) for at in range(11)]  # beyond the commit when first seen
    rows += [moved(3, 0, 100, 100), moved(3, 9 * minute, 100, 130)]  # idle for long, then 30 messages
    rows += [moved(4, at * minute, 130, 100 + 60 * at) for at in range(11)]  # a commit between two observed ends
    rows += [moved(5, 10 * minute, 7, None)]  # without an end nothing is known
    write(tmp_path, QUEUE_PROGRESS, rows)
    known = 10 * minute + 6
    assert _ages(tmp_path) == [
        (0, known - 6, known - minute - 6, known - 6, "history"),
        (1, 0, 0, 0, "history"),
        (2, None, known - 6, None, "history"),
        # The span before its row had none, so the end did not grow earlier.
        (3, known - 8 * minute, known - 9 * minute - 6, known - 8 * minute, "history"),
        (4, known - minute // 2 - 6, known - minute - 6, known - 6, "history"),
        (5, None, None, None, None),
    ]


def test_the_brokers_time_of_a_message_at_the_commit_or_before_it_counts_before_the_history(tmp_path: Path) -> None:
    minute = 60_000

    def written(queue: int, offset: int, at_ms: int, since: int = 0) -> list[dict[str, Any]]:
        """Return rows of a queue that gets a message a second, with the time of one of them in the last row."""
        rows = [moved(queue, at * minute, 130, 100 + 60 * at) for at in range(since, 11)]
        return [*rows[:-1], rows[-1] | {"written_offset": offset, "written_at": T0 + at_ms}]

    rows = [
        *written(0, 130, 31_234),  # it is the next unread one
        *written(1, 129, 30_000),  # the one before it
        *written(2, 101, 10),  # long before it, but after the last end up to the commit
        *written(3, 99, -minute),  # the history is closer
        *written(4, 131, 32_000),  # the group went back: it says nothing of what is before it
        *written(5, 130, 31_234, since=10),  # no end up to the commit is known
        *written(6, 121, 31_234, since=9),
        *written(7, 129, 2 * minute),  # by a clock that is ahead of the collector's
    ]
    write(tmp_path, QUEUE_PROGRESS, rows)
    known = 10 * minute + 6
    by_history = (known - minute // 2 - 6, known - minute - 6, known - 6, "history")
    assert _ages(tmp_path) == [
        (0, *[known - 31_234] * 3, "brokers"),
        (1, known - 30_000 - round(30_006 / 31), known - minute - 6, known - 30_000, "brokers"),
        (2, known - 10 - round((minute - 4) * 29 / 59), known - minute - 6, known - 10, "brokers"),
        (3, *by_history),
        (4, *by_history),
        (5, *[known - 31_234] * 3, "brokers"),
        (6, known - 31_234 - round((9 * minute + 6 - 31_234) * 9 / 519), minute, known - 31_234, "brokers"),
        (7, *by_history),
    ]


def test_how_long_until_retention_deletes_the_next_unread_message_follows_from_the_starts_of_its_log(
    tmp_path: Path,
) -> None:
    minute = 60_000

    def begun(queue: int, committed: int | None, *starts: tuple[int, int]) -> list[dict[str, Any]]:
        """Return a row for each minute and start."""
        return [moved(queue, at * minute, committed, 1_000) | {"start_offset": start} for at, start in starts]

    rows = [
        *begun(0, 500, (0, 0), (1, 50), (4, 110), (6, 110)),  # 60 messages in 3 min, the last time 6 min ago
        *begun(1, 500, (0, 0), (5, 50), (10, 110)),  # moves right now
        *begun(2, 500, (0, 0), (1, 50), (2, 100)),  # it has not moved since
        *begun(3, 500, (6, 50), (10, 110)),  # that it moves is not known
        *begun(4, 100, (0, 0), (5, 50), (10, 110)),  # it has passed the commit
        *begun(5, 500, (0, 400), (2, 600), (4, 900), (6, 0), (10, 7)),  # the topic was made again
        *begun(6, 1_000, (0, 0), (5, 50), (10, 110)),  # none waits
        *begun(7, None, (0, 0), (5, 50), (10, 110)),
    ]
    write(tmp_path, QUEUE_PROGRESS, rows)
    found = {row["queue_id"]: row["deleted_in_ms"] for row in progress(Reader(tmp_path), GROUP, MEMBERS)}
    later = round((500 - 110) * 6 * minute / 60) - 6 * minute
    assert found == {
        0: later,
        1: round((500 - 110) * 5 * minute / 60),
        2: None,
        3: None,
        4: 0,
        5: None,
        6: None,
        7: None,
    }


def test_a_topic_that_was_made_again_has_no_age_from_its_former_ends(tmp_path: Path) -> None:
    write(tmp_path, QUEUE_PROGRESS, [moved(0, 0, 5, 100), moved(0, 60_000, 5, 3), moved(0, 120_000, 5, 9)])
    assert _ages(tmp_path) == [(0, None, 120_000, None, "history")]
