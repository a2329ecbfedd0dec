"""Shell: the current members of a group as its coordinator has them, and how others departed."""

from __future__ import annotations

import pyarrow.compute as pc

from streaming.tables.schema import MEMBERS, Row
from streaming.views.group_state_texts import is_under_way
from streaming.views.pods import NO_POD
from streaming.views.reader import Reader, Within

DEPARTURES = ("session_expired", "member_left", "member_gone")  # kinds of causes
LAST_DEPARTURES = 5
_NOT_ACTIVE = (" (standby)", " (warm-up)")


def with_current_assignment(group: Row, found: list[Row]) -> list[Row]:
    """Return members of a group with their current assignment, as their coordinator has it.

    Args:
        group: The row of their group. found: The members in the tables.
    Returns:
        Rows of ``members`` with ``epoch``, ``target_epoch`` and ``target``, which is a list like ``reported``; null if
        unknown. For a consumer group that assigns or reconciles, they are the members in its row with their current
        queues, because the tables have the state before.
    """
    epoch = group.get("assignment_epoch")
    under_way = group.get("reconciling")
    if under_way is not None:
        sessions = {row["member_id"]: row for row in found}
        new = dict.fromkeys(MEMBERS.names) | NO_POD
        new |= {"computed": [], "reported": None, "agrees": None}
        new |= {"cluster": group["cluster"], "group_id": group["group_id"]}
        return [_reconciling(group, listed, sessions.get(listed["member_id"], new)) for listed in under_way]
    listed = group.get("member_epochs")
    if listed is None:
        return [row | {"epoch": None, "target_epoch": None, "target": None} for row in found]
    others = {member["member_id"]: member["epoch"] for member in listed}
    may_differ = others.keys() if not is_under_way(group) else {row["member_id"] for row in found}
    return [
        row
        | {"epoch": others.get(row["member_id"], epoch), "target_epoch": epoch}
        | {"target": None if row["member_id"] in may_differ else _active(row.get("reported"))}
        for row in found
    ]


def _active(held: list[Row] | None) -> list[Row] | None:
    """Leave out standby and warm-up tasks of a streams group, because the tables do not contain a target's."""
    return None if held is None else [queue for queue in held if not queue["topic"].endswith(_NOT_ACTIVE)]


def _reconciling(group: Row, listed: Row, row: Row) -> Row:
    assigned, target = (queues_of(listed[name]) for name in ("assigned", "target"))
    row = row | {name: listed[name] for name in ("member_id", "instance_id", "client_id", "host", "epoch")}
    row |= {"target_epoch": group["assignment_epoch"], "target": target}
    # The tables contain the current tasks of a streams group, including standby and warm-up tasks.
    if group["protocol"] != "consumer":
        return row
    return row | {"computed": [], "reported": assigned, "agrees": None}


def queues_of(assigned: list[Row]) -> list[Row]:
    """Return the queues of an assignment of ``groups.reconciling``, one by one."""
    return [
        {"topic": part["topic"], "broker": None, "queue_id": number}
        for part in assigned
        for number in part["queue_ids"]
    ]


def departures(reader: Reader, group: str, cluster: str) -> list[Row]:
    """Return the sessions of a group that ended last, newest first, and a sentence on how each ended.

    Returns:
        Rows of ``members`` with ``detail``: what the departure's rebalance says about it, e.g. the coordinator's own
        reason, or how it was inferred; for a replaced static member, that it restarted, and whether without a
        rebalance; null if no cause of a rebalance names the member.
    """
    where = {"cluster": cluster, "group_id": group}
    ended = reader.rows("members", where=where, keep=lambda rows: pc.is_valid(rows["left_at"]))
    last = sorted(ended, key=lambda row: (-row["left_at"], row["member_id"]))[:LAST_DEPARTURES]
    since = min((row["left_at"] for row in last), default=None)
    details: dict[str, str | None] = {}
    if since is not None:
        within = {"event_time": Within(since_ms=since)}
        rebalances = sorted(reader.rows("rebalances", where=where | within), key=lambda row: row["event_time"])
        details |= _restarts(reader, where, last, {row["event_time"] for row in rebalances})
        for rebalance in rebalances:
            causes = [cause for cause in rebalance["triggers"] or [] if cause["kind"] in DEPARTURES]
            details |= {cause["member_id"]: cause["detail"] for cause in causes if cause["member_id"]}
    return [row | {"detail": details.get(row["member_id"])} for row in last]


def _restarts(
    reader: Reader, where: dict[str, str], ended: list[Row], rebalanced_at: set[int]
) -> dict[str, str | None]:
    """Return the fate of static members that another member id replaced; a new id of their own means a restart."""
    replaced = {(row["instance_id"], row["left_at"]): row for row in ended if row["left_reason"] == "replaced"}
    if not replaced:
        return {}
    found: dict[str, str | None] = {}
    for row in reader.rows("members", where=where):
        before = replaced.get((row["instance_id"], row["joined_at"]))
        if before is not None and before["member_id"] != row["member_id"]:
            how = "in a rebalance" if row["joined_at"] in rebalanced_at else "without a rebalance"
            found[before["member_id"]] = f"static member {row['instance_id']} came back as {row['member_id']}, {how}"
    return found
