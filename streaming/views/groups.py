"""Shell: the current groups, and one group with the computed and reported queues of its members."""

from __future__ import annotations

from typing import Any

from streaming.tables.schema import Row
from streaming.views.assignments import assignments
from streaming.views.audit_texts import audits
from streaming.views.finding_lists import findings
from streaming.views.group_sources import group_sources
from streaming.views.members import departures, members, with_current_assignment
from streaming.views.name_checks import one_group
from streaming.views.progress import progress, recent_committers
from streaming.views.reader import Reader
from streaming.views.rebalances import rebalances

LAST_REBALANCES = 5


def groups(reader: Reader, *, cluster: str | None = None, group: str | None = None) -> list[Row]:
    """Return every group now, by cluster and name."""
    found = reader.rows("groups", where={"cluster": cluster, "group_id": group})
    return sorted(found, key=lambda row: (row["cluster"], row["group_id"]))


def groups_of_topic(reader: Reader, cluster: str, topic: str) -> list[str]:
    """Return the names of the groups that own queues of a topic now, or have committed there lately; sorted."""
    owners = {span["group_id"] for span in assignments(reader, cluster=cluster, topic=topic)}
    committers = recent_committers(reader, cluster, topic)
    # A poll that lacks a group shows nothing of its offsets: their rows end without a last one.
    where = {"cluster": cluster, "group_id": committers - owners}
    present = reader.read("groups", columns=["group_id"], where=where)
    return sorted({*owners, *present["group_id"].to_pylist()})


def group(reader: Reader, name: str, cluster: str | None = None) -> dict[str, Any]:
    """Return one group: its row, members with assignments and epochs, progress, last rebalances and audits, findings.

    Raises:
        NotFoundError, AmbiguousError: As ``one_group``.
    """
    row = one_group(reader, name, cluster)
    present = with_current_assignment(row, members(reader, group=name, cluster=row["cluster"]))
    return {
        "group": row,
        "members": present,
        "progress": progress(reader, row, present),
        "rebalances": rebalances(reader, group=name, cluster=row["cluster"], limit=LAST_REBALANCES),
        "audits": audits(reader, group=name, cluster=row["cluster"], limit=LAST_REBALANCES),
        "findings": findings(reader, group=name, cluster=row["cluster"]),
        "departures": departures(reader, name, row["cluster"]),
        "source": group_sources(reader).get(row["cluster"]),
    }


def never_had_members(row: Row) -> bool:
    """Return whether no member of a group was ever observed: it is known by its commits, or as an empty one."""
    return row["state"] == "empty" and row["last_rebalance_at"] is None
