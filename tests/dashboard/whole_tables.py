"""Tables in which every listing has rows: those of the small story, and some of each kind that it lacks."""

from __future__ import annotations

from pathlib import Path

from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.replay_tables import REPLAY_GROUPS, REPLAYS
from streaming.tables.schema import TABLES, Row
from streaming.tables.writer import Mark
from tests.streaming.tables.journals import T0
from tests.streaming.views.annotated_story import annotation
from tests.streaming.views.story import FIRST, SECOND, write_story

_GROUP = {"cluster": "c1", "group_id": "orders"}
_QUEUE = {**_GROUP, "topic": "orders", "committed_at": T0, "end_at": T0}
_EPISODE = {**_GROUP, "began_at": T0, "last_at": T0 + 300}
_AUDIT = {**_GROUP, "system": "kafka", "strategy": "kafka.range", "audited_at": T0 + 10_000, "members": 2, "queues": 2}
MORE: dict[str, list[Row]] = {
    # The finding of the story is open.
    "findings": [
        {
            **_GROUP,
            "finding_id": "f0",
            "kind": "flapping",
            "severity": "info",
            "message": "It flapped.",
            "advice": "Wait.",
        }
        | {"opened_at": T0 + 1_000, "closed_at": T0 + 2_000},
    ],
    "rejected_events": [
        {**_GROUP, "source": "folder", "position": "1", "raw": "{}", "reason": "late", "detail": "old", "seen_at": T0},
        {"source": "topic", "position": "2", "raw": "no", "reason": "not_json", "detail": "odd", "seen_at": T0 + 1},
    ],
    "annotations": [
        annotation("r42", 9_000, 11_000, cluster="c1", groups=["orders*"], url="https://ci.example/42"),
        annotation("n1", 60_000, kind="drain", cluster="c1", hosts=["h1"]),
    ],
    "episodes": [
        {
            **_EPISODE,
            "episode_id": "e1",
            "kind": "same_client_again",
            "client": "a",
            "host": "h1",
            "closed_at": T0 + 900,
        }
        | {"rebalances": 2, "text": "a came back 2 times.", "earlier_rebalance_ids": [FIRST]},
        {**_EPISODE, "episode_id": "e2", "kind": "scaling", "prefix": "a", "began_at": T0 + 10_000, "rebalances": 3}
        | {"text": "A scaling of a: 3 clients joined."},
    ],
    "queue_progress": [
        {**_QUEUE, "queue_id": 0, "event_time": T0, "committed_offset": 3, "end_offset": 10, "lag": 7},
        {**_QUEUE, "queue_id": 1, "event_time": T0 + 10_000, "committed_offset": 5, "end_offset": None, "lag": None},
    ],
    "audits": [
        {
            **_AUDIT,
            "rebalance_id": FIRST,
            "generation": 1,
            "event_time": T0,
            "verdict": "agrees",
            "queues_differing": 0,
        },
        {**_AUDIT, "rebalance_id": SECOND, "generation": 2, "event_time": T0 + 10_000, "verdict": "differs"}
        | {"reason": "stale_metadata", "detail": "It is so with fewer queues.", "queues_differing": 2},
    ],
}


# Two groups that a run of advice has: one with advice, one of which nothing is known.
_FIGURES = {"rebalances": 20, "queues_moved": 100, "queues_stopped": 100, "queue_pause_ms": 90_000, "not_reproduced": 0}
_RECORDED = {**_GROUP, "system": "kafka", "replay_id": "run", "started_at": T0, "covers_from": T0, "covers_to": T0 + 9}
_EACH = {"move_pause_ms": 1_000, "move_repeated_messages": 50.0, "measured_rebalances": 20, "gone_rebalances": 0}
_BETTER = {"policy": "static", "queues_moved": 10, "queues_stopped": 10, "added_rebalances": 1, "notes": ["It is so."]}
_OTHER = {"cluster": "c2", "group_id": "payments", "system": "rocketmq", "replay_id": "run", "started_at": T0}
FIGURES: list[Row] = [
    _RECORDED | _FIGURES | _EACH,
    _RECORDED | _FIGURES | _EACH | _BETTER | {"settings": ["static: group.instance.id"]},
    _OTHER | {"unknown": "the tables have no rebalances of group payments"},
]
RUN: Row = {
    "replay_id": "run",
    "started_at": T0,
    "finished_at": T0 + 1,
    "groups_asked": [],
    "groups": 2,
    "sums": [],
    "policies": ["static"],
    "all_strategies": True,
}


def write_whole(root: Path) -> None:
    """Write the story and these rows."""
    write_story(root)
    for name, rows in MORE.items():
        DeltaRsTable(root, TABLES[name]).append(to_arrow(TABLES[name], rows), Mark("more", 0))
    for table, found in ((REPLAY_GROUPS, FIGURES), (REPLAYS, [RUN])):
        DeltaRsTable(root, table).append(to_arrow(table, found), Mark("run", 0))
