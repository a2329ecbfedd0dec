"""Dashboard: tools about what happened, and why: one rebalance, a group's history, ready questions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field

from dashboard.mcp.arguments import AnyGroup, At, Cluster, Group, Limit, Since, Until
from dashboard.mcp.source import Source, time_of
from dashboard.mcp.tool_answer import Document, Listed, ToolAnswer
from dashboard.questions.answer import kept_answer, kept_total
from dashboard.questions.catalog import question, questions
from dashboard.questions.parameters import bounded, given_in
from dashboard.reading.group_timeline import timeline
from dashboard.reading.listings import EPISODES, FINDINGS
from dashboard.reading.rebalance_detail import rebalance_detail
from streaming.machine.clock import now_ms
from streaming.tables.schema import Row
from streaming.terminal.format import count
from streaming.terminal.output import TIMES
from streaming.views.explain import story
from streaming.views.name_checks import require_names
from streaming.views.rebalances import last_rebalance_of

_REBALANCE = (
    *("rebalance_id", "cluster", "system", "group_id", "event_time", "detected_at", "generation", "trigger", "status"),
    *("strategy", "members_before", "members_after", "queues_moved", "queues_assigned", "queues_revoked"),
    *("queue_outage_min_ms", "queue_outage_max_ms", "outage_min_ms", "outage_max_ms", "outage_unknown_queues"),
    *("repeated_messages", "waiting_messages", "agrees", "queues_differing", "generations_missed"),
)
_CAUSE = ("kind", "member_id", "client", "host", "topic", "detail", "event_id", "part_of")
# Of these a rebalance may know only a part.
_COSTS = {
    "queue_outage_max_ms": "for how long nobody read a queue",
    "repeated_messages": "how many messages were read twice",
    "agrees": "whether members report what the strategy computes",
}


class HistoryTools:
    """Tools that answer as the pages and the commands `explain` and `query` do."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._reading = source.reading

    def explain_rebalance(
        self,
        rebalance_id: Annotated[str, Field(description="The id, or its first characters")] = "",
        group: Annotated[str, Field(description="Instead of an id: the last rebalance of this group")] = "",
        cluster: Cluster = "",
    ) -> Document:
        """Explain a rebalance: its causes, what moved, for how long nobody read, whether members agree."""
        if bool(rebalance_id) == bool(group):
            raise ValueError("name either rebalance_id, or group for its last one, with cluster if several have it")
        if group:
            named, of_group = self._source.group(group, cluster)
            rebalance_id = last_rebalance_of(self._reading.tables, of_group, named)
        found = rebalance_detail(self._reading.tables, rebalance_id, near=self._reading.near)
        row = found["rebalance"]
        causes = [{name: cause.get(name) for name in _CAUSE} for cause in found["causes"]]
        report = story(found).splitlines()
        name = row["rebalance_id"]
        evidence = [
            {
                "what": "rebalance",
                "id": name,
                "at": row["event_time"],
                "link": self._source.link("/rebalance", id=name),
            },
            *({"what": "finding", "id": each["finding_id"], "at": each["opened_at"]} for each in found["findings"]),
            *({"what": "annotation", "link": each["url"]} for each in found["annotations"] if each.get("url")),
        ]
        return self._source.document(
            ToolAnswer(
                [row["cluster"]],
                {each: row.get(each) for each in _REBALANCE} | {"is_last_of_group": bool(group)},
                {
                    "causes": Listed(causes, len(causes), "the page of the rebalance lists all"),
                    "report": Listed(report, len(report), "the page of the rebalance lists all"),
                },
                not_known=[f"{text} is not known" for each, text in _COSTS.items() if row.get(each) is None],
                evidence=evidence,
            )
        )

    def timeline(
        self, group: Group, cluster: Cluster = "", since: Since = "", until: Until = "", limit: Limit = 40
    ) -> Document:
        """List what happened to a group, newest first, in a span or the last day: rebalances, findings, annotations."""
        named, of_group = self._source.group(group, cluster)
        since_ms, until_ms = time_of("since", since), time_of("until", until)
        found = timeline(self._reading, named, of_group, since_ms=since_ms, until_ms=until_ms)
        span = {"since": found["since"], "until": found["until"]}
        where = {"cluster": named, "group_id": of_group}
        findings = self._source.piece(FINDINGS, {**where, **span}, limit, "-opened_at")
        episodes = self._source.piece(EPISODES, {**where, **span}, limit)
        events = [*_rebalances(found), *_findings(findings.rows), *_episodes(episodes.rows), *_annotations(found)]
        events = [event for event in events if found["since"] <= event["at"] < found["until"]]
        events.sort(key=lambda event: -event["at"])
        unread = found["mark_count"] - len(found["marks"]) + findings.total - len(findings.rows)
        facts = {**where, **span, "rebalances": found["mark_count"], "findings": findings.total}
        facts |= {"known_until": found["known_until"]}
        link = self._source.link("/group", cluster=named, group=of_group)
        return self._source.document(
            ToolAnswer(
                [named],
                facts,
                {"events": Listed(events[:limit], len(events) + unread, "narrow by since and until")},
                evidence=[{"what": "group", "link": link}],
            ),
            TIMES | {"until"},
        )

    def run_question(
        self,
        question_name: Annotated[str, Field(description="Name of a ready question; empty lists them")] = "",
        since: Since = "",
        until: Until = "",
        at: At = "",
        cluster: Cluster = "",
        group: AnyGroup = "",
        topic: Annotated[str, Field(description="Topic, where a question needs one")] = "",
        queue: Annotated[int | None, Field(ge=-1, lt=2**63, description="Queue, where a question needs one")] = None,
        limit: Limit = 20,
    ) -> Document:
        """Run a ready question over all groups: who rebalances most, why, at what cost, is this week worse, …"""
        if not question_name:
            listed = [
                {"name": each.name, "title": each.title, "parameters": ", ".join(each.parameters)}
                for each in questions().values()
            ]
            return self._source.document(ToolAnswer(None, {}, {"questions": Listed(listed, len(listed))}))
        chosen = question(question_name)
        named = self._source.cluster(cluster)
        if group:
            group = self._source.group(group, cluster)[1]
        texts = {"since": since, "until": until, "at": at, "cluster": named or "", "group": group, "topic": topic}
        texts |= {"queue": "" if queue is None else str(queue)}
        given = bounded(chosen, given_in(chosen, texts, now_ms()), limit)
        require_names(self._reading.tables, given)
        found = kept_answer(self._reading, chosen, given)
        total = kept_total(self._reading, chosen, given, found)
        at_ms = time_of("at", at)
        link = self._source.link(f"/questions/{chosen.name}", **texts)
        return self._source.document(
            ToolAnswer(
                None if named is None else [named],
                {"question": chosen.title, "explanation": chosen.explanation},
                {"rows": Listed(found.rows, total, f"raise limit, or narrow by {', '.join(chosen.parameters)}")},
                at_ms=at_ms,
                evidence=[{"what": "question", "id": chosen.name, "link": link}],
            ),
            found.times | TIMES,
        )


def _rebalances(found: dict[str, Any]) -> Iterator[Row]:
    for mark in found["marks"]:
        failed = "" if mark["status"] == "completed" else f", {mark['status']}"
        text = f"{mark['cause']}: {count(mark['moved'] or 0, 'queue')} moved{failed}"
        yield {"at": mark["at"], "what": "rebalance", "id": mark["id"], "trigger": mark["trigger"], "text": text}


def _findings(rows: list[Row]) -> Iterator[Row]:
    for row in rows:
        of_it = {"id": row["finding_id"], "kind": row["kind"]}
        yield {"at": row["opened_at"], "what": "finding opened", **of_it, "text": row["message"]}
        if row["closed_at"] is not None:
            yield {"at": row["closed_at"], "what": "finding closed", **of_it}


def _episodes(rows: list[Row]) -> Iterator[Row]:
    for row in rows:
        of_it = {"id": row["episode_id"], "kind": row["kind"], "text": row["text"]}
        yield {"at": row["began_at"], "what": "episode", **of_it, "closed_at": row["closed_at"]}


def _annotations(found: dict[str, Any]) -> Iterator[Row]:
    for row in found["annotations"]:
        kept = {name: row[name] for name in ("kind", "text", "concerns", "url")}
        yield {"at": row["at"], "what": "annotation", **kept, "ended_at": row["until"]}
