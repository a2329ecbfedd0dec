"""Shell: what happened to a group in a span of time, as one story: what, why, at what cost, in which order."""

from __future__ import annotations

import textwrap
from collections import Counter
from typing import Any

from streaming.tables.schema import Row
from streaming.terminal.causes import describe_cause
from streaming.terminal.escape import printable
from streaming.terminal.format import brief_time_text, count, second_text
from streaming.views import related_annotations
from streaming.views.known_clusters import first_by_cluster
from streaming.views.liveness_reader import read_freshness
from streaming.views.name_checks import one_group
from streaming.views.reader import Reader, Within
from streaming.views.rebalance_costs import Cost, outage_text
from streaming.views.rebalance_episodes import episodes_of
from streaming.views.related_annotations import AnnotationSpans, Happening

# Events of one story; of more, the newest are shown, and how many are left out.
EVENTS_SHOWN = 60
_WIDTH = 80
_MEMBER_WIDTH = 24


def group_story(
    reader: Reader, group: str, cluster: str | None, since_ms: int, until_ms: int, now_ms: int, near: AnnotationSpans
) -> dict[str, Any]:
    """Return the rebalances, episodes, findings and annotations of a group in a span of time.

    Args:
        near: For how long an annotation without an end counts as under way.

    Returns:
        Rows of the tables, the oldest first; a rebalance has the id of its episode also where that became known later.
        ``unknown``: what is not known of the cluster at the span's begin and end, and why; empty if all is.
        ``dropped_before``: the time before which retention dropped rebalances, if the span begins earlier; else None.

    Raises:
        NotFoundError, AmbiguousError: There is no such group, or several clusters have it.
    """
    named = one_group(reader, group, cluster)["cluster"]
    where = {"cluster": named, "group_id": group}
    rebalances = sorted(
        reader.rows("rebalances", where=where | {"event_time": Within(since_ms, until_ms)}),
        key=lambda row: (row["event_time"], row["rebalance_id"]),
    )
    episode_of = episodes_of(reader, rebalances)
    findings = [
        row
        for row in reader.rows("findings", where=where)
        if row["opened_at"] < until_ms and (row["closed_at"] is None or row["closed_at"] >= since_ms)
    ]
    spans = AnnotationSpans(lead_ms=0, open_ms=near.open_ms)
    annotations = related_annotations.near(reader, since_ms, until_ms, spans)
    within = {"joined_at": Within(until_ms=until_ms), "left_at": Within(since_ms=since_ms, or_null=True)}
    members = related_annotations.concerned_members(
        reader, annotations, lambda: reader.rows("members", where=where | within)
    )
    dropped = reader.dropped_before("rebalances").get(named)
    return {
        **where,
        "since": since_ms,
        "until": until_ms,
        "unknown": _unknown(reader, named, (since_ms, min(until_ms, now_ms)), now_ms),
        "dropped_before": dropped if dropped is not None and dropped > since_ms else None,
        "rebalances": [
            row | {"episode_id": episode_of.get(row["rebalance_id"], row).get("episode_id")} for row in rebalances
        ],
        "episodes": sorted({row["episode_id"]: row for row in episode_of.values()}.values(), key=_began),
        "findings": sorted(findings, key=lambda row: (row["opened_at"], row["finding_id"])),
        "annotations": sorted(
            related_annotations.related(annotations, Happening(named, group, members, since_ms, until_ms), spans),
            key=_began,
        ),
    }


def _unknown(reader: Reader, cluster: str, times: tuple[int, int], now_ms: int) -> list[str]:
    status, first = read_freshness(reader.root).of(cluster), first_by_cluster(reader).get(cluster)
    found = [status.unknown_at(at_ms, first, now_ms) for at_ms in times]
    return sorted(
        {
            lost.reason.replace("nothing", "Nothing", 1)
            if lost.reason.startswith("nothing ")
            else f"{cluster} is {lost.text}"
            for lost in found
            if lost is not None
        }
    )


def _began(row: Row) -> int:
    return int(row["began_at"])


def story_text(found: dict[str, Any]) -> str:
    """Return the result of ``group_story`` as text of 80 columns."""
    rebalances = found["rebalances"]
    lines = _wrapped(
        f"Group {printable(found['group_id'])} of cluster {printable(found['cluster'])},"
        f" from {second_text(found['since'])} to {second_text(found['until'])}"
    )
    lines += ["", *(line for text in found["unknown"] for line in _wrapped(f"{printable(text)}."))]
    if found["dropped_before"] is not None:
        lines += _wrapped(
            f"Retention dropped rebalances before {second_text(found['dropped_before'])}: not known here."
        )
    if not rebalances:
        lines += ["No rebalance was seen."]
    else:
        cost = Cost()
        for row in rebalances:
            cost = cost.with_rebalance(row)
        causes = Counter(row["trigger"] for row in rebalances).most_common()
        lines += _wrapped(f"{cost.text}.")
        if unmeasured := sum(bool(row["queues_moved"]) and row["outage_max_ms"] is None for row in rebalances):
            lines += _wrapped(
                f"Of {count(unmeasured, 'rebalance')} that moved queues it is not known how long at most."
            )
        lines += _wrapped(f"Main causes: {', '.join(f'{kind} ({times})' for kind, times in causes)}.")
    events = sorted([*_annotations(found), *_rebalances(found), *_findings(found)], key=lambda event: event[0])
    if events:
        lines += ["", "What happened:"]
        if len(events) > EVENTS_SHOWN:
            lines.append(f"  … {count(len(events) - EVENTS_SHOWN, 'earlier event')}; --json lists them all")
        for at_ms, text in events[-EVENTS_SHOWN:]:
            lines += textwrap.wrap(
                f"  {brief_time_text(at_ms)}  {text}", _WIDTH, subsequent_indent=" " * 18, break_long_words=False
            )
    return "\n".join(lines)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH)


def _rebalances(found: dict[str, Any]) -> list[tuple[int, str]]:
    """Return rebalances as events; those of one episode are one event, at its first within the span."""
    events, of_episode = [], {row["episode_id"]: row for row in found["episodes"]}
    seen: Counter[str] = Counter(row["episode_id"] for row in found["rebalances"] if row["episode_id"])
    begun: set[str] = set()
    for row in found["rebalances"]:
        episode = of_episode.get(row["episode_id"])
        if episode is None:
            events.append((row["event_time"], _rebalance(row, found["group_id"])))
        elif row["episode_id"] not in begun:
            begun.add(row["episode_id"])
            here = f"{seen[row['episode_id']]} of {count(episode['rebalances'], 'rebalance')} of an episode"
            text = (
                f"{here}, {episode['kind']}: {printable(episode['text'])} (the first here: {row['rebalance_id'][:8]})"
            )
            events.append((row["event_time"], text))
    return events


def _rebalance(row: Row, group: str) -> str:
    why = printable(describe_cause(row["triggers"] or [], group, _MEMBER_WIDTH) or row["trigger"])
    how = f"failed: {printable(row['error'] or '')}" if row["status"] == "failed" else f"{_moved(row)}"
    outage = outage_text(row)
    unread = "" if outage == "-" else f", nobody read for {outage}"
    return f"rebalance {row['rebalance_id'][:8]}: {why}; {how}{unread}"


def _moved(row: Row) -> str:
    moved = row["queues_moved"]
    return "moved queues are not known" if moved is None else f"{count(moved, 'queue')} moved"


def _findings(found: dict[str, Any]) -> list[tuple[int, str]]:
    events = []
    for row in found["findings"]:
        text = f"{row['kind']} ({row['severity']})"
        if row["opened_at"] >= found["since"]:
            events.append((row["opened_at"], f"finding opened, {text}: {printable(row['message'])}"))
        if row["closed_at"] is not None and row["closed_at"] < found["until"]:
            events.append((row["closed_at"], f"finding closed, {text}"))
    return events


def _annotations(found: dict[str, Any]) -> list[tuple[int, str]]:
    shown = related_annotations.shown_text
    return [
        (row["began_at"], f"annotation, {shown(row['kind'])}: {shown(row['text'])}") for row in found["annotations"]
    ]
