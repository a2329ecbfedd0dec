"""Shell: the columns in which `show` lists groups, members, progress, rebalances, findings and audits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streaming.tables.schema import Row
    from streaming.terminal.output import Shown


def group_columns() -> list[Shown]:
    """Return the columns of groups."""
    from streaming.terminal.output import Shown, field, time_field
    from streaming.views.group_state_texts import generation_text, state_text

    return [
        field("CLUSTER", "cluster"),
        field("GROUP", "group_id"),
        field("SYSTEM", "system"),
        Shown("STATE", state_text),
        Shown("PROTOCOL", lambda row: row.get("protocol") or "-"),
        field("ASSIGNMENT-STRATEGY", "strategy"),
        field("LIBRARY", "library"),
        Shown("GENERATION", generation_text),
        field("#MEMBERS", "members"),
        field("#QUEUES", "queues"),
        field("IDLE", "idle_members"),
        field("UNASSIGNED", "unassigned_queues"),
        field("SPREAD", "spread"),
        time_field("LAST-REBALANCE", "last_rebalance_at"),
    ]


def member_columns(rows: Sequence[Row]) -> list[Shown]:
    """Return the columns of members with their queues; what some member has by the names of Kafka's own tool."""
    from streaming.terminal.format import queues_text
    from streaming.terminal.output import Shown, field, time_field

    def some(name: str, *columns: Shown) -> list[Shown]:
        return [*columns] if any(row.get(name) is not None for row in rows) else []

    return [
        field("CONSUMER-ID", "member_id"),
        field("GROUP-INSTANCE-ID", "instance_id"),
        field("HOST", "host"),
        field("CLIENT-ID", "client_id"),
        Shown("#PARTITIONS", lambda row: str(len(row["computed"] if row["reported"] is None else row["reported"]))),
        Shown("COMPUTED", lambda row: queues_text(row["computed"])),
        Shown("REPORTED", lambda row: queues_text(row["reported"])),
        Shown("AGREES", lambda row: {True: "yes", False: "no", None: "-"}[row["agrees"]]),
        *some("epoch", field("CURRENT-EPOCH", "epoch"), field("TARGET-EPOCH", "target_epoch")),
        *some("target", Shown("TARGET-ASSIGNMENT", lambda row: queues_text(row["target"]))),
        *some("protocol", field("PROTOCOL", "protocol")),
        *some("process_id", field("PROCESS", "process_id")),
        time_field("JOINED", "joined_at"),
    ]


def departure_columns() -> list[Shown]:
    """Return the columns of members that departed."""
    from streaming.terminal.output import field, time_field

    return [
        field("CONSUMER-ID", "member_id"),
        field("GROUP-INSTANCE-ID", "instance_id"),
        field("HOST", "host"),
        time_field("LEFT", "left_at"),
        field("HOW", "left_reason"),
        field("DETAIL", "detail"),
    ]


def progress_columns(rows: Sequence[Row]) -> list[Shown]:
    """Return the columns of `kafka-consumer-groups.sh --describe`, in its order; brokers where queues have them."""
    from streaming.terminal.output import Shown, field
    from streaming.views.progress import lag_text

    return [
        field("GROUP", "group_id"),
        field("TOPIC", "topic"),
        *([field("BROKER", "broker")] if any(row["broker"] for row in rows) else []),
        field("PARTITION", "queue_id"),
        field("CURRENT-OFFSET", "committed_offset"),
        field("LOG-END-OFFSET", "end_offset"),
        Shown("LAG", lag_text),
        field("CONSUMER-ID", "member_id"),
        field("HOST", "host"),
        field("CLIENT-ID", "client_id"),
    ]


def name_columns() -> list[Shown]:
    """Return the columns of a group's cluster and name."""
    from streaming.terminal.output import field

    return [field("CLUSTER", "cluster"), field("GROUP", "group_id")]


def rebalance_columns(*, with_group: bool) -> list[Shown]:
    """Return the columns of rebalances."""
    from streaming.terminal.output import Shown, field, time_field, yes_no
    from streaming.views.phase_texts import continued, phases_text
    from streaming.views.rebalance_costs import outage_text
    from streaming.views.rebalances import causes_text, repeated_text, waiting_text

    return [
        time_field("TIME", "event_time"),
        *(name_columns() if with_group else []),
        field("GENERATION", "generation"),
        Shown("TRIGGER", causes_text),
        field("STATUS", "status"),
        Shown("#MEMBERS", lambda row: f"{row['members_before']}→{row['members_after']}"),
        field("MOVED", "queues_moved"),
        field("ASSIGNED", "queues_assigned"),
        field("REVOKED", "queues_revoked"),
        Shown("OUTAGE", outage_text),
        Shown("PHASES", lambda row: phases_text(row) or "-"),
        Shown("REPEATED", repeated_text),
        Shown("WAITING", waiting_text),
        field("AGREES", "agrees", yes_no),
        field("REBALANCE-ID", "rebalance_id"),
        Shown("CONTINUES", lambda row: continued(row) or "-"),
    ]


def finding_columns(*, with_group: bool) -> list[Shown]:
    """Return the columns of findings."""
    from streaming.terminal.output import field, time_field

    return [
        field("SEVERITY", "severity"),
        field("KIND", "kind"),
        *(name_columns() if with_group else []),
        time_field("SINCE", "opened_at"),
        time_field("UNTIL", "closed_at"),
        field("MESSAGE", "message"),
        field("ADVICE", "advice"),
    ]


def audit_columns(*, with_group: bool) -> list[Shown]:
    """Return the columns of audits."""
    from streaming.terminal.output import field, time_field

    return [
        time_field("TIME", "event_time"),
        *(name_columns() if with_group else []),
        field("GENERATION", "generation"),
        field("VERDICT", "verdict"),
        field("REASON", "reason"),
        field("DIFFERING", "queues_differing"),
        field("MISSING", "missing"),
        field("DUPLICATE", "duplicate"),
        field("UNEXPECTED", "unexpected_owner"),
        field("EVIDENCE", "detail"),
        field("REBALANCE-ID", "rebalance_id"),
    ]
