"""Dashboard: tools about groups as they are, or were at a time: health, problems, owners, members, lag."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from dashboard.mcp.arguments import AnyGroup, At, Cluster, Group, Limit
from dashboard.mcp.source import Source, time_of
from dashboard.mcp.tool_answer import Document, Listed, ToolAnswer, picked
from dashboard.reading.group_detail import current_members, offsets_of
from dashboard.reading.known_time import nothing_to_list
from dashboard.reading.listings import FINDINGS, GROUPS, MEMBERS
from dashboard.reading.objectives import evaluate
from dashboard.reading.queue_owners import owners_of_queue, why_no_owner
from streaming.tables.schema import Row
from streaming.terminal.format import count, queues_text
from streaming.views.group_state_texts import is_under_way
from streaming.views.lag_ages import group_lag_text
from streaming.views.members import departures, with_current_assignment
from streaming.views.name_checks import member_named, one_group

_GROUP = (
    *("cluster", "group_id", "system", "health", "state", "finding_kinds", "members", "queues", "unassigned_queues"),
    *("rebalances_hour", "rebalances_day", "last_rebalance_at", "last_rebalance_id", "strategy"),
)
FINDING = (
    *("finding_id", "cluster", "group_id", "kind", "severity", "message", "advice", "opened_at", "closed_at"),
    "evidence",
)
_OWNER = (
    *("cluster", "group_id", "topic", "broker", "queue_id", "origin", "member_id", "client_id", "host", "instance_id"),
    *("valid_from", "valid_to", "rebalance_id"),
)
_MEMBER = (
    *("member_id", "client", "client_id", "host", "instance_id", "joined_at", "last_heartbeat_at", "left_at"),
    *("left_reason", "agrees", "pod", "node"),
)
_QUEUE = (
    *("topic", "broker", "queue_id", "lag", "lag_reliable", "lag_ms", "lag_min_ms", "lag_max_ms", "is_left_over"),
    *("lag_source", "deleted_in_ms"),
    *("committed_offset", "committed_at", "end_offset", "end_at", "member_id", "host"),
)
_MORE = "raise limit, or name a cluster"


class GroupTools:
    """Tools that answer as the pages and the commands `show`, `check` and `who-owned` do."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._reading = source.reading

    def find_groups(
        self,
        text: Annotated[str, Field(description="Part of the name of a group, its cluster or strategy")] = "",
        cluster: Cluster = "",
        health: Annotated[str, Field(description="critical, warning, info, ok, unknown; several with commas")] = "",
        finding: Annotated[str, Field(description="Only with an open finding of this kind, e.g. flapping")] = "",
        system: Annotated[str, Field(description="kafka, rocketmq or metaq")] = "",
        limit: Limit = 20,
    ) -> Document:
        """Find consumer groups: health, state, open findings, size, rebalances; the worst first."""
        named = self._source.cluster(cluster)
        chosen = {"q": text, "cluster": named, "health": health, "kind": finding, "system": system}
        found = self._source.piece(GROUPS, chosen, limit)
        nothing = [] if found.rows else [nothing_to_list(self._reading, named)]
        link = self._source.link("/", **chosen)
        return self._source.document(
            ToolAnswer(
                None if named is None else [named],
                {"groups_found": found.total},
                {"groups": Listed(picked(found.rows, _GROUP), found.total, "narrow by text, cluster, health, finding")},
                not_known=nothing,
                evidence=[{"what": "groups", "link": link}],
            )
        )

    def what_is_wrong(self, cluster: Cluster = "", group: AnyGroup = "", at: At = "", limit: Limit = 20) -> Document:
        """Report what is wrong, now or at a time: open findings with advice, missed objectives, what is not known."""
        named: str | None = None
        of_group: str | None = None
        if group:
            named, of_group = self._source.group(group, cluster)
        else:
            named = self._source.cluster(cluster)
        at_ms = time_of("at", at)
        check = self._source.settings.check
        found = evaluate(self._reading.tables, check, self._reading.widespread, at_ms, cluster=named, group=of_group)
        missed = [
            {"objective": figure.name, "state": figure.state, "value": figure.value, "cluster": figure.cluster}
            | {"group_id": figure.group_id}
            for figure in found.figures
            if figure.state != "ok"
        ]
        facts = {
            "state": found.state,
            "at": at_ms,
            "open_findings": {f"{severity} {kind}": number for (severity, kind), number in found.kinds.items()},
            "findings_of_severity_info": found.info,
            "widespread_not_counted": [kind.text for kind in found.widespread],
            "objectives_missed": missed,
        }
        return self._source.document(
            ToolAnswer(
                None if named is None else [named],
                facts,
                {"findings": Listed(picked(found.findings[:limit], FINDING), len(found.findings), _MORE)},
                at_ms=at_ms,
                not_known=list(found.platforms),
                evidence=[
                    {"what": "findings", "link": self._source.link("/findings", cluster=named, group_id=of_group)}
                ],
            )
        )

    def who_owned(
        self,
        topic: Annotated[str, Field(description="Topic, its whole name")],
        queue: Annotated[int, Field(ge=0, lt=2**63, description="Number of the queue (partition)")],
        at: At = "",
        group: AnyGroup = "",
        cluster: Cluster = "",
        broker: Annotated[str, Field(description="Only this broker, where queues are numbered by broker")] = "",
    ) -> Document:
        """Name the owner of a queue, now or at a time: in each group, as computed and as reported by members."""
        named, of_group, at_ms = self._source.cluster(cluster), None, time_of("at", at)
        if group:
            named, of_group = self._source.group(group, cluster)
        topic = self._source.name(topic, ("topics", "assignments"), "topic", {"cluster": named})
        chosen: dict[str, Any] = {"group": of_group, "cluster": named, "broker": broker or None, "at_ms": at_ms}
        rows = owners_of_queue(self._reading, topic, queue, **chosen)
        not_known: list[str] = []
        facts: Row = {"topic": topic, "queue_id": queue, "at": at_ms}
        if not rows:
            sentence, is_known = why_no_owner(self._reading.tables, topic, queue, **chosen)
            facts |= {"nobody": sentence} if is_known else {}
            not_known += [] if is_known else [sentence]
        return self._source.document(
            ToolAnswer(
                sorted({row["cluster"] for row in rows}) or (None if named is None else [named]),
                facts,
                {"owners": Listed(picked(rows, _OWNER), len(rows), "name a group, a cluster or a broker")},
                at_ms=at_ms,
                not_known=not_known,
                evidence=[
                    {
                        "what": "rebalance since which it owns it",
                        "id": name,
                        "link": self._source.link("/rebalance", id=name),
                    }
                    for name in dict.fromkeys(row["rebalance_id"] for row in rows if row.get("rebalance_id"))
                ],
            )
        )

    def members(
        self,
        group: Group,
        cluster: Cluster = "",
        at: At = "",
        member: Annotated[str, Field(description="Only this member: its id, or the beginning of it")] = "",
        history: Annotated[bool, Field(description="Also those that left, with how they left")] = False,
        limit: Limit = 50,
    ) -> Document:
        """List the members of a group with their queues, now or at a time; or all that it had, and how they left."""
        named, of_group = self._source.group(group, cluster)
        where = {"cluster": named, "group_id": of_group}
        at_ms = time_of("at", at)
        if history and at_ms is not None:
            raise ValueError("history is of all times: leave out at")
        if member:
            member = self._source.name(member, ("members",), "member_id", where)
            member = member_named(self._reading.tables, member, cluster=named, group=of_group)
        chosen: dict[str, str | int | None] = {**where, "member_id": member}
        chosen |= {"at": at_ms} if at_ms is not None else {} if history else {"open": "yes"}
        found = self._source.piece(MEMBERS, chosen, limit)
        rows = found.rows
        facts: Row = {**where, "at": at_ms, "members_found": found.total}
        if at_ms is None and not history and not member:
            # The coordinator's list may be ahead of the sessions.
            every = with_current_assignment(one_group(self._reading.tables, of_group, named), rows)
            rows, facts["members_found"] = every[:limit], max(found.total, len(every))
        lists = {
            "members": Listed(
                [
                    {name: row.get(name) for name in _MEMBER}
                    | {"computed": queues_text(row["computed"]), "reported": queues_text(row["reported"])}
                    for row in rows
                ],
                facts["members_found"],
                "raise limit, or name a member",
            )
        }
        if history:
            last = departures(self._reading.tables, of_group, named)
            names = ("member_id", "client", "left_at", "left_reason", "detail")
            lists["last_departures"] = Listed(picked(last, names), len(last))
        link = self._source.link("/members", **where)
        return self._source.document(
            ToolAnswer([named], facts, lists, at_ms=at_ms, evidence=[{"what": "members", "link": link}])
        )

    def lag(self, group: Group, cluster: Cluster = "", limit: Limit = 30) -> Document:
        """Report how far a group is behind in each queue, the worst first, for how long, and what stands still."""
        named, of_group = self._source.group(group, cluster)
        row = one_group(self._reading.tables, of_group, named)
        present = with_current_assignment(row, current_members(self._reading, named, of_group))
        rows = offsets_of(self._reading, row, present)
        rows.sort(key=lambda queue: -1 if queue["lag"] is None or queue["is_left_over"] else queue["lag"], reverse=True)
        where = {"cluster": named, "group_id": of_group}
        findings = self._source.piece(FINDINGS, {**where, "open": "yes"}, limit)
        not_known = [f"the lag is not reliable: the group rebalances ({row['state']})"] if is_under_way(row) else []
        if unknown := sum(queue["lag"] is None for queue in rows):
            not_known.append(f"of {count(unknown, 'queue')} the lag is not known")
        facts = {**where, "system": row["system"], "state": row["state"], "lag": group_lag_text(rows)}
        return self._source.document(
            ToolAnswer(
                [named],
                facts,
                {
                    "queues": Listed(picked(rows[:limit], _QUEUE), len(rows), "raise limit"),
                    "open_findings": Listed(picked(findings.rows, FINDING), findings.total, "raise limit"),
                },
                not_known=not_known,
                evidence=[{"what": "group", "link": self._source.link("/group", cluster=named, group=of_group)}],
            )
        )
