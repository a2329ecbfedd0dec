"""Tables of groups of Kafka that rebalance now, one of each protocol, and of one that only polls show."""

from __future__ import annotations

from pathlib import Path

from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.schema import QUEUE_PROGRESS
from streaming.tables.writer import Mark
from tests.streaming.tables.journals import T0, Journal, assigned, joined, left, stable
from tests.streaming.views.story import rebalance, store
from udfs.model import journal

WAITS = "old has yet to revoke orders-1; young waits for orders-1 of old"


def write_rebalancing(root: Path) -> None:
    """Write groups that are all rebalancing except the last; the first rebalances in two parts.

    Of newer too many members are there to be listed, of listed each is.
    """
    history = Journal()
    changes = [
        history.change(at, body, group=name)
        for name in ("classic", "newer", "listed", "streams", "polled")
        for at, body in (
            (0, joined("old", 0)),
            (0, assigned(0, "old", 0, origin="reported")),
            (5_000, left("gone", 1_000, 5_000, "expired")),
            (9_000, _row(name)),
        )
    ]
    times = {"began_at": T0 + 7_800, "joined_at": T0 + 9_000, "completed_at": T0 + 9_300}
    first = rebalance("r1", 9_000, "member_joined", "young", logical_id="r1", library="kafka-python", **times)
    second = rebalance("r2", 9_500, "cooperative_follow_up", None, logical_id="r1")
    store(root, [row | {"group_id": "classic"} for row in (first, second)], changes)
    queue = {"cluster": "c1", "group_id": "classic", "topic": "orders", "queue_id": 0, "event_time": T0 + 8_000}
    offsets = {"committed_offset": 5, "committed_at": T0 + 8_005, "end_offset": 9, "end_at": T0 + 8_006, "lag": 4}
    moved = dict.fromkeys(QUEUE_PROGRESS.names) | queue | offsets
    DeltaRsTable(root, QUEUE_PROGRESS).append(to_arrow(QUEUE_PROGRESS, [moved]), Mark("job", 1))


def _row(name: str) -> journal.GroupChanged:
    row = stable(1, at=9_000)
    row.library = "kafka-python"
    if name == "classic":
        row.state = "preparing_rebalance"
    elif name in ("newer", "listed"):
        row.state, row.protocol, row.epoch, row.assignment_epoch, row.waits = "reconciling", "consumer", 3, 3, WAITS
        row.member_epochs = [journal.MemberEpoch("old", 2)]
        row.reconciling = _members() if name == "listed" else None
    elif name == "streams":
        row.state, row.protocol, row.epoch, row.assignment_epoch, row.waits = "not_followed", "streams", 3, 3, WAITS
    else:
        row.observed_by = "polls"
    return row


def _members() -> list[journal.ReconcilingMember]:
    first, second = ((journal.AssignedQueues("orders", (number,)),) for number in (0, 1))
    return [
        journal.ReconcilingMember("old", None, "app", "/h", 2, "unrevoked", first, second, first),
        journal.ReconcilingMember("young", None, "app", "/h", 3, "unreleased", (), (), second),
    ]
