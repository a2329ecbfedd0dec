"""Tables of a night: a fleet that works, in which three things go wrong, and a cluster of which nothing comes any more.

Events are made for the last two hours, decided by the core, and written as the job would. Times are minutes after the
beginning:

- ``payments`` loses its client ``payments-3`` on 10.0.0.23 again and again, from minute 60 on: its sessions expire.
- ``orders`` has a member, ``orders-2``, that lives and does not read ``orders-2`` from minute 70 on.
- ``invoices`` gets two more queues in minute 75, which no member takes.
- The cluster ``edge`` is silent from minute 90 on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from streaming.pipeline.decided_rows import progress_rows
from tests.browser.day_tables import MINUTE_MS, write_table
from tests.core_config import core_config
from tests.simulation.core_run import CoreRun
from tests.simulation.recorded_day import tables_of
from tests.streaming.tables.signs import known, leave_sign, living

MINUTES = 120
FLAPPING, STALLED, GROWN, SILENT = 60, 70, 75, 90
_STEP_S = 10
_SESSION_MS = 30_000
_HEALTHY = ("checkout", "search", "mails", "audit-log")
# Each group has a topic of its name with as many queues, and a member for every second one.
_QUEUES = 6
Event = dict[str, Any]


class Night:
    """The events of the night, in the order of their times, in ms after its beginning."""

    def __init__(self, begin_ms: int) -> None:
        self._begin_ms = begin_ms
        self.events: list[Event] = []
        self._ends: dict[tuple[str, int], int] = {}
        self._read: dict[tuple[str, int], int] = {}
        for cluster, groups in (("shop", (*_HEALTHY, "orders", "invoices")), ("edge", ("sensors",))):
            for group in groups:
                self._snapshot(cluster, group)
        self._counted()
        for second in range(_STEP_S, MINUTES * 60, _STEP_S):
            self._step(second)
        self.events.sort(key=lambda event: event["event_time"])

    def _add(self, second: float, cluster: str, kind: str, **fields: Any) -> None:
        if cluster == "edge" and second > SILENT * 60:
            return
        event = {"schema_version": 1, "event_time": self._begin_ms + round(second * 1_000), "system": "kafka"}
        self.events.append(event | {"cluster": cluster, "type": kind, "event_id": str(len(self.events)), **fields})

    def _snapshot(self, cluster: str, group: str) -> None:
        """Let a group have its first generation, which goes on all night."""
        self._add(1, cluster, "topic_queues", topic=group, queue_count=_QUEUES)
        names = [f"{group}-{number}" for number in range(_QUEUES // 2)]
        members = [
            {"member_id": f"{name}-a1", "client_id": name, "host": f"/10.0.{len(group)}.{number + 1}"}
            | {"subscriptions": [group], "strategies": ["range"]}
            for number, name in enumerate(names)
        ]
        held = {
            member["member_id"]: [{"topic": group, "queue_id": 2 * number + half} for half in (0, 1)]
            for number, member in enumerate(members)
        }
        fields = {"generation": 1, "state": "Stable", "strategy": "range", "members": members, "assignments": held}
        self._add(2, cluster, "group_snapshot", group=group, **fields)

    def _counted(self) -> None:
        """Let the members of payments report themselves; one of them stops for a minute again and again."""
        self._add(1, "shop", "topic_queues", topic="payments", queue_count=_QUEUES)
        for number in range(_QUEUES):
            name = f"payments-{number}"
            described: Event = {"member_id": f"{name}-m", "client_id": name, "host": f"10.0.0.{20 + number}"}
            described |= {"subscriptions": ["payments"], "strategies": ["range"], "session_timeout_ms": _SESSION_MS}
            self._add(2, "shop", "member_joined", group="payments", **described)
            for second in range(_STEP_S, MINUTES * 60, _STEP_S):
                flaps = number == 3 and second >= FLAPPING * 60
                if not flaps or second % 180 < 100:
                    fields = described if flaps else {"member_id": described["member_id"]}
                    kind = "member_joined" if flaps and second % 180 == 0 else "heartbeat"
                    self._add(second, "shop", kind, group="payments", **fields)

    def _step(self, second: int) -> None:
        """Write to all queues, and let their owners commit what was there a step before."""
        for cluster, groups in (("shop", (*_HEALTHY, "orders", "invoices", "payments")), ("edge", ("sensors",))):
            for group in groups:
                number = _QUEUES + 2 * (group == "invoices" and second >= GROWN * 60)
                queues = [(group, queue) for queue in range(number)]
                commits = []
                for queue in queues:
                    is_read = queue[1] < _QUEUES and not (queue == ("orders", 2) and second >= STALLED * 60)
                    if is_read and queue in self._ends:
                        self._read[queue] = self._ends[queue]
                        commits.append({"topic": group, "queue_id": queue[1], "offset": self._read[queue]})
                    self._ends[queue] = self._ends.get(queue, 1_000) + 20 + queue[1]
                ends = [
                    {"queue_id": queue[1], "end_offset": self._ends[queue], "start_offset": 900} for queue in queues
                ]
                self._add(second + 0.5, cluster, "progress", group=group, queues=commits)
                self._add(second + 0.6, cluster, "queue_ends", topic=group, queues=ends)
            self._add(second + 1, cluster, "clock")
        if second == GROWN * 60:
            self._add(second, "shop", "topic_queues", topic="invoices", queue_count=_QUEUES + 2)


def write_night(root: Path, now_ms: int) -> None:
    """Write the tables of a night that ends now, with the sign of a job that lives and has lost one cluster."""
    begin_ms = now_ms // MINUTE_MS * MINUTE_MS - MINUTES * MINUTE_MS
    run = CoreRun(core_config())
    for batch_ms, texts in _batches(Night(begin_ms).events):
        run.batch(batch_ms, texts)
    assert run.rejected == []
    moved = [row for decided in run.progress for row in progress_rows(msgspec.json.encode(decided).decode())]
    for name, rows in {**tables_of(run), "rebalances": run.rows(), "queue_progress": moved}.items():
        write_table(root, name, list(rows))
    lost = {"is_live": True, "is_followed": True, "problem": "no broker answers"}
    edge = known("edge", known_until=begin_ms + SILENT * MINUTE_MS, age_ms=4_000_000, **lost)
    leave_sign(root, living(known("shop", known_until=now_ms, is_live=True), edge, every_ms=3_600_000))


def _batches(events: list[Event]) -> Iterator[tuple[int, list[bytes]]]:
    for begin in range(0, len(events), 2_000):
        batch = events[begin : begin + 2_000]
        yield batch[-1]["event_time"] + MINUTE_MS, [json.dumps(event).encode() for event in batch]
