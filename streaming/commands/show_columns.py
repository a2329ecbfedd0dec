"""Shell: the columns in which `show` lists groups, members, progress, rebalances, episodes, findings and audits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streaming.tables.schema import Row
    from streaming.terminal.output import Shown

# If space is scarce, this many characters of a rebalance's id are shown; `explain` accepts them.
_ID_SHOWN = 8


def group_columns() -> list[Shown]:
    """Return the columns of groups with their health."""
    from streaming.terminal.output import Shown, field, time_field
    from streaming.views.group_state_texts import generation_text

    return [
        *name_columns(),
        field("HEALTH", "health"),
        field("SYSTEM", "system", is_wide=True),
        field("STATE", "state"),
        field("COORDINATOR-STATE", "coordinator_state", is_wide=True),
        Shown("PROTOCOL", lambda row: row.get("protocol") or "-", is_wide=True),
        field("ASSIGNMENT-STRATEGY", "strategy", is_wide=True),
        field("LIBRARY", "library", is_wide=True),
        Shown("GENERATION", generation_text, is_wide=True),
        field("#MEMBERS", "members"),
        field("#QUEUES", "queues"),
        field("IDLE", "idle_members", is_wide=True),
        field("UNASSIGNED", "unassigned_queues", is_wide=True),
        field("SPREAD", "spread", is_wide=True),
        time_field("LAST-REBALANCE", "last_rebalance_at", is_wide=True),
        field("FINDINGS", "finding_kinds"),
        field("ADVICE", "advice", is_wide=True),
    ]


def member_columns(rows: Sequence[Row]) -> list[Shown]:
    """Return the columns of members with their queues; optional columns are named as in Kafka's own tool."""
    from streaming.terminal.format import queues_text
    from streaming.terminal.member_names import brief_id
    from streaming.terminal.output import Shown, field, name_field, time_field, widened

    def some(name: str, *columns: Shown) -> list[Shown]:
        return widened(columns) if any(row.get(name) is not None for row in rows) else []

    def held(row: Row) -> list[Row]:
        found: list[Row] = row["computed"] if row["reported"] is None else row["reported"]
        return found

    return [
        name_field("CONSUMER-ID", "member_id", brief_id),
        field("GROUP-INSTANCE-ID", "instance_id", is_wide=True),
        # In a narrow space the pods of all say more than their addresses.
        field("HOST", "host", is_wide=bool(rows) and all(row.get("pod") is not None for row in rows)),
        *([name_field("POD", "pod")] if any(row.get("pod") is not None for row in rows) else []),
        field("CLIENT-ID", "client_id", is_wide=True),
        field("CLIENT", "client", is_wide=True),
        Shown("#PARTITIONS", lambda row: str(len(held(row)))),
        Shown("COMPUTED", lambda row: queues_text(row["computed"]), is_wide=True),
        Shown("REPORTED", lambda row: queues_text(row["reported"]), is_wide=True),
        Shown("AGREES", lambda row: {True: "yes", False: "no", None: "-"}[row["agrees"]]),
        Shown("PARTITIONS", lambda row: queues_text(held(row)), is_brief=True),
        *some("epoch", field("CURRENT-EPOCH", "epoch"), field("TARGET-EPOCH", "target_epoch")),
        *some("target", Shown("TARGET-ASSIGNMENT", lambda row: queues_text(row["target"]))),
        *some("protocol", field("PROTOCOL", "protocol")),
        *some("process_id", field("PROCESS", "process_id")),
        *some("pod", field("WORKLOAD", "workload"), field("REVISION", "revision"), field("NAMESPACE", "namespace")),
        *some("pod", field("NODE", "node"), field("IMAGE", "image")),
        time_field("JOINED", "joined_at", is_wide=True),
    ]


def departure_columns() -> list[Shown]:
    """Return the columns of members that departed."""
    from streaming.terminal.member_names import brief_id
    from streaming.terminal.output import field, name_field, time_field

    return [
        name_field("CONSUMER-ID", "member_id", brief_id),
        field("GROUP-INSTANCE-ID", "instance_id", is_wide=True),
        field("HOST", "host", is_wide=True),
        time_field("LEFT", "left_at"),
        field("HOW", "left_reason"),
        field("DETAIL", "detail"),
    ]


def progress_columns(rows: Sequence[Row]) -> list[Shown]:
    """Return the columns of `kafka-consumer-groups.sh --describe`, in its order; brokers if queues have them."""
    from streaming.terminal.member_names import brief_id
    from streaming.terminal.output import Shown, field, name_field
    from streaming.views.lag_ages import deleted_in_text, lag_age_text
    from streaming.views.progress import lag_text

    return [
        field("GROUP", "group_id", is_wide=True),
        name_field("TOPIC", "topic"),
        *([field("BROKER", "broker")] if any(row["broker"] for row in rows) else []),
        field("PARTITION", "queue_id"),
        field("CURRENT-OFFSET", "committed_offset"),
        field("LOG-END-OFFSET", "end_offset"),
        Shown("LAG", lag_text),
        Shown("AGE", lag_age_text),
        *([Shown("DELETED", deleted_in_text)] if any(row.get("deleted_in_ms") is not None for row in rows) else []),
        name_field("CONSUMER-ID", "member_id", brief_id),
        field("HOST", "host", is_wide=True),
        field("CLIENT-ID", "client_id", is_wide=True),
    ]


def assignment_columns(*, with_host: bool = False) -> list[Shown]:
    """Return the columns of owners of queues; with a host also details of the owner."""
    from streaming.terminal.format import queue_name
    from streaming.terminal.member_names import brief_id
    from streaming.terminal.output import Shown, field, name_field, time_field

    return [
        *name_columns(),
        Shown("QUEUE", lambda row: queue_name(row["topic"], row["broker"], row["queue_id"]), is_name=True),
        name_field("CONSUMER-ID", "member_id", brief_id),
        field("GROUP-INSTANCE-ID", "instance_id", is_wide=True),
        *([field("HOST", "host"), field("CLIENT-ID", "client_id", is_wide=True)] if with_host else []),
        field("ORIGIN", "origin"),
        field("GENERATION", "generation", is_wide=True),
        time_field("SINCE", "valid_from"),
        time_field("UNTIL", "valid_to", is_wide=True),
    ]


def name_columns() -> list[Shown]:
    """Return the columns of a group's cluster and name."""
    from streaming.terminal.output import name_field

    return [name_field("CLUSTER", "cluster"), name_field("GROUP", "group_id")]


def _id_columns() -> list[Shown]:
    """Return the column with a rebalance's id, whole or only its beginning."""
    from streaming.terminal.output import Shown, field

    begin = Shown("REBALANCE", lambda row: row["rebalance_id"][:_ID_SHOWN], is_brief=True)
    return [begin, field("REBALANCE-ID", "rebalance_id", is_wide=True)]


def rebalance_columns(*, with_group: bool, client_ids: Mapping[str, str] | None = None) -> list[Shown]:
    """Return the columns of rebalances.

    Args:
        client_ids: The client ids of members whose ids do not name their clients.
    """
    from streaming.terminal.member_names import client_of
    from streaming.terminal.output import Shown, field, time_field, yes_no
    from streaming.views.phase_texts import continued, phases_text
    from streaming.views.rebalance_costs import outage_text
    from streaming.views.rebalances import causes_text, repeated_text, waiting_text

    def brief_causes(row: Row) -> str:
        text = causes_text(row, lambda member: client_of(member, (client_ids or {}).get(member)))
        return f"failed: {text}" if row["status"] == "failed" else text

    return [
        *_id_columns(),
        time_field("TIME", "event_time"),
        *(name_columns() if with_group else []),
        field("GENERATION", "generation", is_wide=True),
        field("STATUS", "status", is_wide=True),
        Shown("#MEMBERS", lambda row: f"{row['members_before']}→{row['members_after']}", is_wide=True),
        field("MOVED", "queues_moved", is_wide=with_group),
        field("ASSIGNED", "queues_assigned", is_wide=True),
        field("REVOKED", "queues_revoked", is_wide=True),
        Shown("TRIGGER", causes_text, brief_causes),
        Shown("OUTAGE", outage_text),
        Shown("PHASES", lambda row: phases_text(row) or "-", is_wide=True),
        Shown("REPEATED", repeated_text, is_wide=True),
        Shown("WAITING", waiting_text, is_wide=True),
        field("AGREES", "agrees", yes_no, is_wide=True),
        Shown("CONTINUES", lambda row: continued(row) or "-", is_wide=True),
    ]


def finding_columns(*, with_group: bool, with_closed: bool = False) -> list[Shown]:
    """Return the columns of findings; closed ones with the time of closing."""
    from streaming.machine.clock import now_ms
    from streaming.terminal.format import age_text
    from streaming.terminal.output import Shown, field, time_field

    return [
        field("SEVERITY", "severity"),
        field("KIND", "kind"),
        *(name_columns() if with_group else []),
        time_field("SINCE", "opened_at", is_wide=True),
        Shown("AGE", lambda row: age_text(now_ms() - row["opened_at"]), is_brief=True),
        time_field("UNTIL", "closed_at", is_wide=not with_closed),
        field("MESSAGE", "message"),
        field("ADVICE", "advice", is_wide=True),
    ]


def audit_columns(*, with_group: bool) -> list[Shown]:
    """Return the columns of audits."""
    from streaming.terminal.output import field, time_field

    return [
        *_id_columns(),
        time_field("TIME", "event_time"),
        *(name_columns() if with_group else []),
        field("GENERATION", "generation", is_wide=True),
        field("VERDICT", "verdict"),
        field("DIFFERING", "queues_differing", is_wide=with_group),
        field("REASON", "reason"),
        field("MISSING", "missing", is_wide=True),
        field("DUPLICATE", "duplicate", is_wide=True),
        field("UNEXPECTED", "unexpected_owner", is_wide=True),
        field("EVIDENCE", "detail", is_wide=True),
    ]


def annotation_columns() -> list[Shown]:
    """Return the columns of annotations."""
    from streaming.terminal.output import Shown, field, time_field
    from streaming.views.related_annotations import concerns_text, shown_text

    return [
        time_field("FROM", "began_at"),
        time_field("TO", "ended_at"),
        field("KIND", "kind"),
        Shown("TEXT", lambda row: shown_text(row["text"], 2_000), lambda row: shown_text(row["text"], 40)),
        Shown("CONCERNS", concerns_text, lambda row: shown_text(concerns_text(row), 30)),
        field("ID", "annotation_id", is_wide=True),
        field("URL", "url", is_wide=True),
        time_field("WRITTEN", "written_at", is_wide=True),
    ]


def episode_columns(*, with_group: bool) -> list[Shown]:
    """Return the columns of episodes."""
    from streaming.terminal.output import field, time_field

    return [
        field("KIND", "kind"),
        *(name_columns() if with_group else []),
        time_field("FROM", "began_at"),
        time_field("LAST", "last_at", is_wide=True),
        time_field("OVER", "closed_at", is_wide=True),
        field("#REBALANCES", "rebalances"),
        field("CLIENT", "client", is_wide=True),
        field("HOST", "host", is_wide=True),
        field("MOVED", "queues_moved", is_wide=True),
        field("EPISODE", "text"),
        field("EPISODE-ID", "episode_id", is_wide=True),
    ]
