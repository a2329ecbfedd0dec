"""Shell: a group's state and generation as text; if it is not followed, as its coordinator has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from streaming.tables.schema import Row
from udfs.model.journal import TOPOLOGY_NOT_READY, UNDER_WAY

# Columns of ``groups`` that the state depends on.
STATE_COLUMNS: Final = ("state", "generation", "epoch", "assignment_epoch", "members", "protocol", "waits")
# Values of ``state`` in the tables; for a kind that is not followed the coordinator's may be shown in addition.
NOT_FOLLOWED: Final = "not_followed"
TABLE_STATES: Final = ("stable", "empty", "failed", *UNDER_WAY, NOT_FOLLOWED)
STATES: Final = (*TABLE_STATES, "not_ready")


def state_text(row: Row) -> str:
    """Return a group's state; for a kind that is not followed also the coordinator's, as its records show it."""
    state = coordinator_state(row)
    return state if state == row["state"] else f"{state} ({row['state']})"


def is_under_way(row: Mapping[str, Any]) -> bool:
    """Return whether a group is rebalancing, as far as its source shows."""
    return coordinator_state(row) in UNDER_WAY


def has_former_spans(row: Mapping[str, Any]) -> bool:
    """Return whether tables of spans and sessions show the state before a rebalance in progress.

    Members of the new protocol join and hand over in the meantime; that is written when the last of them has its
    target.
    """
    return is_under_way(row) and row.get("protocol") == "consumer"


def has_former_members(row: Mapping[str, Any]) -> bool:
    """Return whether members are known only as they were before a rebalance in progress, because they are many."""
    return has_former_spans(row) and row.get("reconciling") is None


def never_had_members(row: Mapping[str, Any]) -> bool:
    """Return whether no member of a group was ever observed: it is known by its commits, or as an empty group."""
    return row["state"] == "empty" and row["last_rebalance_at"] is None


def coordinator_state(row: Mapping[str, Any]) -> str:
    """Return a group's state; for a kind that is not followed the coordinator's, if its records show it.

    A share group, or a classic one, is empty or stable. A streams group may also be between two epochs.

    Source: kafka-group-coordinator 4.1 ``StreamsGroup#maybeUpdateGroupState``, ``ShareGroup#maybeUpdateGroupState``.
    """
    state = str(row["state"])
    if state != NOT_FOLLOWED or (row["generation"] is None and row["epoch"] is None):
        return state
    if not row["members"]:
        return "empty"
    if row["protocol"] != "streams":
        return "stable"
    if row["waits"] == TOPOLOGY_NOT_READY:
        return "not_ready"
    if row["epoch"] != row["assignment_epoch"]:
        return "assigning"
    return "reconciling" if row["waits"] else "stable"


def generation_text(row: Row) -> str:
    """Return a group's generation and, if it is not from the coordinator's records, what it is known from.

    Between two epochs of Kafka's newer protocols: the last that its members have taken over, and how far the next is.
    """
    generation, epoch = row["generation"], row.get("epoch")
    text = "-" if generation is None else str(generation)
    if epoch is not None and epoch != generation:
        target = row["assignment_epoch"]
        return f"{text} (epoch {epoch}, target {'-' if target is None else target})"
    return f"{text} ({row['observed_by']})" if generation is not None and row.get("observed_by") else text
