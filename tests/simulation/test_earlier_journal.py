"""A journal of a release that wrote each queue by itself: it is read, and continued packed.

``journal_of_single_queues.json`` was written by that release: its changes, and the state of its shard.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

import msgspec

from streaming.tables.journal_entries import Entry
from streaming.tables.schema import Row
from tests.core_config import core_config
from tests.streaming.tables.projected_rows import apply_changes
from tests.udfs.shard.shard_script import Cluster, clock, count, join, leave
from udfs.group import coordinator as group_logic
from udfs.model import journal
from udfs.model.spans import QueueAssigned, QueueReleased

RULES = core_config(shards=1, allowed_lateness_ms=0)
BEFORE = [
    count("t", 8, 0),
    *(join(name, at, subscriptions=("t", "u")) for name, at in (("a", 10), ("b", 20), ("c", 30))),
    leave("b", 40),
    count("u", 3, 50),
    join("d", 60, subscriptions=("t",)),
    clock(100),
]
AFTER = [join("0", 200, subscriptions=("t", "u")), leave("d", 300), clock(400)]


def changes_of(cluster: Cluster) -> list[journal.Change]:
    return [row for row in cluster.rows if isinstance(row, journal.Change)]


def assignments(changes: list[journal.Change], rows: list[Row] | None = None) -> list[Row]:
    """Return the spans, without what the earlier journal does not know of them."""
    found = apply_changes("assignments", changes, rows or [])
    return [{name: value for name, value in row.items() if not name.startswith("outage_")} for row in found]


def test_an_earlier_journal_gives_the_rows_that_this_one_gives_and_is_continued() -> None:
    kept = json.loads(Path(__file__).with_name("journal_of_single_queues.json").read_text())
    earlier = msgspec.convert(kept["changes"], list[journal.Change])
    assert {type(change.body) for change in earlier} >= {QueueAssigned, QueueReleased}
    continued = Cluster(group_logic, RULES)
    continued.states[0] = base64.b64decode(kept["state"])
    continued.batch(*AFTER)
    whole = Cluster(group_logic, RULES)
    whole.batch(*BEFORE)
    assert not any(isinstance(change.body, QueueAssigned) for change in changes_of(whole))
    assert assignments(earlier) == assignments(changes_of(whole))
    whole.batch(*AFTER)
    expected = assignments(changes_of(whole))
    assert len(expected) > 20
    # Whether the earlier changes were followed before or wait in the same piece.
    assert assignments([*earlier, *changes_of(continued)]) == expected
    assert assignments(changes_of(continued), assignments(earlier)) == expected


def test_entries_decode_from_the_text_of_the_journal() -> None:
    cluster = Cluster(group_logic, RULES)
    cluster.batch(*BEFORE)
    for change in changes_of(cluster):
        body = msgspec.json.decode(msgspec.json.encode(change.body), type=journal.Body)
        assert Entry(change.cluster, change.group_id, change.event_time, body).body == change.body
