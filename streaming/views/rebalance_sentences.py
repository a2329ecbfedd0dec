"""Shell: a rebalance in a sentence or two: why it happened, what moved, what it cost. No I/O."""

from __future__ import annotations

from typing import Any

from streaming.tables.schema import Row
from streaming.terminal.causes import describe_cause
from streaming.terminal.format import between, count, counted

# The first few causes are named; the others are counted by kind, as in lists.
_ID_WIDTH = 80


def rebalance_sentences(reported: dict[str, Any]) -> str:
    """Return the result of ``explain`` in two sentences: the causes with what moved, and what that cost.

    Example:
        >>> row = {"group_id": "g", "triggers": [{"kind": "member_left", "member_id": "a"}], "status": "completed"}
        >>> row |= {"members_before": 2, "members_after": 1, "queues_moved": 1, "queues_assigned": 0, "queues_kept": 1}
        >>> row |= {"queues_revoked": 0, "queues_after": 2, "outage_queues": 1, "outage_unknown_queues": 0}
        >>> row |= {"outage_min_ms": 0, "outage_max_ms": 4_000}
        >>> row |= {"queue_outage_min_ms": 0, "queue_outage_max_ms": 4_000, "unassigned_queues": 0}
        >>> rebalance_sentences({"rebalance": row})
        'Because a left, 1 of 2 queues moved; the group has 1 member instead of 2. Nobody read 1 queue for up to 4.0 s.'
        >>> row |= {"outage_unknown_queues": 1, "queue_outage_min_ms": 0, "queue_outage_max_ms": None}
        >>> rebalance_sentences({"rebalance": row}).rpartition(". ")[2]
        'Nobody read 1 queue, for how long is not known.'
    """
    row = reported["rebalance"]
    why = describe_cause(row["triggers"] or [], row["group_id"], _ID_WIDTH) or "no cause was observed"
    text = (
        f"Because {why}, {_moved(row)}{_members(row)}." if row["triggers"] else f"No cause was observed; {_moved(row)}."
    )
    return " ".join([text, *_cost(row)])


def _moved(row: Row) -> str:
    if row["status"] != "completed":
        return "the assignment was to be computed, which failed; members keep what they had"
    if row["queues_moved"] is None:
        return "which queues moved is not known"
    parts = []
    if moved := row["queues_moved"]:
        after = row["queues_after"]
        parts.append(f"{moved:,} of {counted(after, 'queue')} moved" if after else f"{counted(moved, 'queue')} moved")
    if assigned := row["queues_assigned"]:
        parts.append(f"{count(assigned, 'queue')} got an owner")
    if revoked := row["queues_revoked"]:
        parts.append(f"{count(revoked, 'queue')} lost {'its' if revoked == 1 else 'their'} owner")
    return ", ".join(parts) or "no queue changed its owner"


def _members(row: Row) -> str:
    before, after = row["members_before"], row["members_after"]
    if before is None or after is None or before == after:
        return ""
    if not after:
        return "; the group became empty"
    return f"; the group has {counted(after, 'member')} instead of {before:,}"


def _cost(row: Row) -> list[str]:
    stopped, unknown = row["outage_queues"] or 0, row["outage_unknown_queues"] or 0
    found = []
    if stopped and (row["queue_outage_min_ms"] or row["queue_outage_max_ms"] is not None):
        longest = between(row["queue_outage_min_ms"], row["queue_outage_max_ms"])
        more = f"; of {count(unknown, 'queue')} the end is not known" if unknown else ""
        found.append(
            f"Nobody read {count(stopped, 'queue')} for {longest}{' at the longest' if stopped > 1 else ''}{more}."
        )
    elif stopped:
        found.append(f"Nobody read {count(stopped, 'queue')}, for how long is not known.")
    elif row["outage_max_ms"] is None:
        found.append("Whether a queue was left unread is not known.")
    if row["unassigned_queues"]:
        found.append(f"{count(row['unassigned_queues'], 'queue').capitalize()} had no owner afterwards.")
    return found
