"""Dashboard: the content of the page of one topic."""

from __future__ import annotations

from typing import Any, NamedTuple

from dashboard.pages.page_addresses import API, address, group_address
from dashboard.reading.lag_history import MOST_GROUPS, LagHistory, lag_history
from dashboard.reading.listing_query import BadQuestionError
from dashboard.reading.problems import NAMED
from dashboard.reading.questions import Reading
from dashboard.reading.time_range import TimeRange
from dashboard.reading.topic_detail import TopicDetail, topic_detail
from streaming.tables.schema import Row
from streaming.terminal.format import counted, queue_name
from streaming.views.related_findings import with_ways

# Each table on the page shows at most this many rows; the download has all of them.
ROWS = 200


class QueueName(NamedTuple):
    """A queue of a topic, as an address has it; an empty number is the whole topic."""

    broker: str = ""
    number: str = ""


class NextStep(NamedTuple):
    """What to do next: why, and the page on which it is done."""

    text: str
    link: str = ""
    to: str = ""


def topic_page(reading: Reading, cluster: str, topic: str, span: TimeRange, queue: QueueName) -> dict[str, Any]:
    """Return a topic with its readers, queues, commits, findings, and the lag of its readers in a range.

    Args:
        queue: Its rows alone are in the tables of queues and commits.

    Raises:
        NotFoundError: There is no such topic.
        BadQuestionError: The number of the queue is none.
    """
    detail = topic_detail(reading, cluster, topic, span)
    name = _name(topic, queue)
    queues = [row for row in detail.queues if name in ("", row["queue"])]
    commits = [row | {"ahead": _ahead(row)} for row in detail.commits if name in ("", row["queue"])]
    drawn = [row["group_id"] for row in detail.groups[:MOST_GROUPS]]
    history = lag_history(reading, cluster, drawn, span, topic)
    chosen = {"cluster": cluster, "topic": topic}
    return {
        "topic": topic,
        "cluster": cluster,
        "queue": name,
        "who_owned": address("/questions/who-owned", chosen, queue=queue.number) if name else "",
        "known": reading.freshness.of(cluster),
        "present": next((row for row in detail.spans if row["valid_to"] is None), None),
        "spans": detail.spans,
        "groups": [_group(row) for row in detail.groups[:ROWS]],
        "group_count": len(detail.groups),
        "described": min(len(detail.groups), MOST_GROUPS),
        "queues": queues[:ROWS],
        "queue_count": len(queues),
        "unread": sum(not row["readers"] for row in detail.queues),
        "commits": commits[:ROWS],
        "commit_count": len(commits),
        "findings": with_ways(reading.tables, detail.findings, NAMED),
        "steps": next_steps(detail, cluster),
        "lag": lag_values(history),
        "data": {
            "topic": address(f"{API}topic", chosen),
            "lag": address(f"{API}lag", chosen, since=span.since_ms, until=span.until_ms),
        },
    }


def lag_values(history: LagHistory) -> dict[str, Any]:
    """Return what the template of a chart of lag needs: its newest rows, and how many there are."""
    known = [row for row in history.rows if row["lag"] is not None]
    newest = sorted(known, key=lambda row: (-row["at"], row["group_id"]))
    return {"rows": newest[:ROWS], "count": len(known), "step_ms": history.step_ms, "gaps": history.gaps}


def next_steps(detail: TopicDetail, cluster: str) -> list[NextStep]:
    """Return what to do next about a topic, the most urgent first; nothing if nothing is known to be wrong."""
    found = [NextStep(row["advice"]) for row in detail.findings[:NAMED] if row["closed_at"] is None and row["advice"]]
    if not detail.groups:
        found.append(
            NextStep(
                "No group is known to read it. If one should, see whether it is followed, and what it subscribes to",
                "groups of the cluster",
                address("/", cluster=cluster),
            )
        )
    for group in detail.groups:
        if group["unowned"]:
            number = counted(len(group["unowned"]), "queue")
            text = f"Without an owner in {group['group_id']}: {number}, though it has members. See who subscribes"
            found.append(NextStep(text, "its members", f"{group_address(cluster, group['group_id'])}#members"))
    behind = max(detail.groups, key=lambda group: group["lag"] or 0, default=None)
    if behind is not None and behind["lag"]:
        text = f"{behind['group_id']} is furthest behind, by {counted(behind['lag'], 'message')}"
        found.append(NextStep(text, "its lag", f"{group_address(cluster, behind['group_id'])}#lag"))
    return found


def _name(topic: str, queue: QueueName) -> str:
    if not queue.number:
        return ""
    if not queue.number.isascii() or not queue.number.isdecimal() or len(queue.number) > 9:
        raise BadQuestionError(f"queue: {queue.number[:50]!r} is no number of a queue")
    return queue_name(topic, queue.broker or None, int(queue.number))


def _group(row: Row) -> Row:
    """Return a row of the table of groups: with the age of its oldest unread message."""
    oldest = row["oldest"] or {"lag_ms": None, "lag_min_ms": None}
    unowned = None if row["unowned"] is None else len(row["unowned"])
    return row | {name: oldest[name] for name in ("lag_ms", "lag_min_ms")} | {"unowned_count": unowned}


def _ahead(row: Row) -> int | None:
    """Return how many messages retention may still delete before it reaches the commit; negative if it was faster."""
    committed, start = row["committed_offset"], row["start_offset"]
    return None if committed is None or start is None else committed - start
