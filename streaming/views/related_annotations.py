"""Shell: annotations that explain something: what lay just before or beside it, and concerns the same things.

One rule for commands, pages and alerts. An annotation is related to a rebalance (or a finding) if it overlaps its time,
a lead before it included, and if everything that it names matches: the cluster, the group, and one member that changed.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from streaming.settings.defaults import default
from streaming.tables.schema import Row
from streaming.terminal.escape import printable
from streaming.terminal.format import count, span_of_time
from streaming.views.pods import hosts_of, with_pods
from streaming.views.reader import Except, Reader, Within, time_scalar
from udfs.model.annotations import FOLLOWED_KIND, POD_KIND

if TYPE_CHECKING:
    from streaming.settings.model import Annotations

SHOWN = 8
_WIDTH = 80
_TEXT_SHOWN = 300
_GLOBS_SHOWN = 3
# What lasts, and is no news.
_NEWS = Except(frozenset((POD_KIND, FOLLOWED_KIND)))
# A finding may open this long after the sessions that it speaks of have ended.
_ENDED_BEFORE_MS = 3_600_000


class AnnotationSpans(NamedTuple):
    """The settings of the section ``annotations`` that say which annotations are near.

    Attributes:
        lead_ms: One that ended this long before something still is. open_ms: One without an end counts for this long.
    """

    lead_ms: int = default("annotations", "lead_ms")
    open_ms: int = default("annotations", "open_ms")

    @classmethod
    def of(cls, settings: Annotations) -> AnnotationSpans:
        """Return those of the settings."""
        return cls(settings.lead_ms, settings.open_ms)


DEFAULT_SPANS: Final = AnnotationSpans()


class Happening(NamedTuple):
    """What annotations may explain.

    Attributes:
        group_id: None if it concerns no group, or all of its cluster's.
        members: The members that changed, or that it names, as rows of ``members``.
        began_at, ended_at: Epoch ms; equal for a moment.
    """

    cluster: str
    group_id: str | None
    members: Sequence[Mapping[str, Any]]
    began_at: int
    ended_at: int


def of_rebalance(reader: Reader, rebalance: Row, spans: AnnotationSpans = DEFAULT_SPANS) -> list[Row]:
    """Return the annotations that are related to a rebalance, as ``related`` does."""
    found = near(reader, _began(rebalance), rebalance["event_time"], spans)
    if not found:
        return []
    happening = Happening(
        rebalance["cluster"],
        rebalance["group_id"],
        concerned_members(reader, found, lambda: _changed_members(reader, rebalance)),
        _began(rebalance),
        rebalance["event_time"],
    )
    return related(found, happening, spans)


def near(reader: Reader, since_ms: int, until_ms: int, spans: AnnotationSpans = DEFAULT_SPANS) -> list[Row]:
    """Return the annotations that overlap a span, or its lead, whatever they concern."""
    where = {
        "kind": _NEWS,
        "began_at": Within(until_ms=until_ms + 1),
        "ended_at": Within(since_ms=since_ms - spans.lead_ms, or_null=True),
    }
    since = since_ms - spans.lead_ms
    return [row for row in reader.rows("annotations", where=where) if _until(row, spans) >= since]


def concerned_members(reader: Reader, annotations: Sequence[Row], read_members: Callable[[], list[Row]]) -> list[Row]:
    """Return the members that annotations may concern, if any concerns members; with pods, if any names a pod."""
    if not any(row["client_ids"] or row["hosts"] for row in annotations):
        return []
    members = read_members()
    return with_pods(reader, members) if any(row["pod"] for row in annotations) else members


def related(annotations: Iterable[Row], happening: Happening, spans: AnnotationSpans = DEFAULT_SPANS) -> list[Row]:
    """Return the annotations that are related to something, the closest first.

    Returns:
        Rows of ``annotations`` with ``when_text``, how long before or beside it was; ``concerns_text``; ``line``, all
        in one line. Texts are printable.
    """
    found = [
        row
        for row in annotations
        if row["began_at"] <= happening.ended_at
        and _until(row, spans) >= happening.began_at - spans.lead_ms
        and _concerns(row, happening)
    ]
    found.sort(key=lambda row: (*_distance(row, happening.began_at), row["annotation_id"]))
    return [_shown(row, happening.began_at) for row in found]


def shown_text(text: str, longest: int = _TEXT_SHOWN) -> str:
    """Return an untrusted text as one printable line, cut."""
    line = printable(" ".join(text.split()))
    return line if len(line) <= longest else line[: longest - 1] + "…"


def concerns_text(row: Row) -> str:
    """Return what an annotation concerns, as text.

    Example:
        >>> concerns_text({"cluster": "main", "groups": ["orders*"], "client_ids": [], "hosts": ["10.0.0.7", "b"]})
        'cluster main, group orders*, host 10.0.0.7 or b'
    """
    named = [("cluster", [row["cluster"]] if row["cluster"] else [])]
    named += [(name, row[column] or []) for name, column in _GLOBS.items()]
    parts = [f"{name} {_listed(values)}" for name, values in named if values]
    return ", ".join(parts) or "all clusters"


def lines(reported: Mapping[str, Any]) -> list[str]:
    """Return the annotations of ``explain`` as lines of at most 80 columns, the first few of them."""
    found = reported["annotations"]
    written: list[str] = []
    for row in found[:SHOWN]:
        written += textwrap.wrap(row["line"], _WIDTH, initial_indent="  ", subsequent_indent="    ")
        if row["url"]:
            written.append(f"    {printable(row['url'])}")
    if len(found) > SHOWN:
        written.append(f"  … and {count(len(found) - SHOWN, 'more annotation')}; --json lists them all")
    return ["", "What was done then, as annotated; it decides nothing here:", *written] if written else []


_GLOBS: Final = {"group": "groups", "client": "client_ids", "host": "hosts"}


def _listed(values: Sequence[str]) -> str:
    some = [shown_text(value, 100) for value in values[:_GLOBS_SHOWN]]
    return " or ".join(some) + (f" or {len(values) - len(some)} more" if len(values) > len(some) else "")


def _shown(row: Row, at_ms: int) -> Row:
    when, concerns = _when(row, at_ms), concerns_text(row)
    line = f"{shown_text(row['kind'])}: {shown_text(row['text'])}; {when} ({concerns})"
    return row | {"when_text": when, "concerns_text": concerns, "line": line}


def _when(row: Row, at_ms: int) -> str:
    """Return when an annotation was, seen from a time."""
    began, ended = row["began_at"], row["ended_at"]
    if began > at_ms:
        return f"began {span_of_time(began - at_ms)} after it began"
    before = f"began {span_of_time(at_ms - began)} before" if began < at_ms else "began with it"
    if ended is None:
        return f"{before}, its end is not known"
    if ended < at_ms:
        return before if ended == began else f"{before}, ended {span_of_time(at_ms - ended)} before"
    return before if ended == began else f"{before}, ended {span_of_time(ended - at_ms)} after it began"


def _distance(row: Row, at_ms: int) -> tuple[int, int]:
    """Return how far an annotation is from a time: none if it was under way; then how far its beginning is."""
    began, ended = row["began_at"], row["ended_at"]
    beginning = abs(at_ms - began)
    if ended is None or began > at_ms:
        return beginning, beginning
    return max(0, at_ms - ended), beginning


def _until(row: Row, spans: AnnotationSpans) -> int:
    ended: int | None = row["ended_at"]
    return int(row["began_at"]) + spans.open_ms if ended is None else ended


def _concerns(row: Row, happening: Happening) -> bool:
    if row["cluster"] not in (None, happening.cluster):
        return False
    if row["groups"] and not _matches(row["groups"], [happening.group_id]):
        return False
    clients, hosts = row["client_ids"], row["hosts"]
    if not clients and not hosts:
        return True
    return any(
        (not clients or _matches(clients, [member.get("client_id") or member.get("member_id")]))
        and (not hosts or _matches(hosts, hosts_of(member)))
        # Addresses are used again: what befell a pod concerns no member of the next one.
        and (not row.get("pod") or member.get("pod") in (None, row["pod"]))
        for member in happening.members
    )


def _matches(globs: Sequence[str], names: Iterable[str | None]) -> bool:
    present = [name for name in names if name]
    return any(fnmatchcase(name, glob) for glob in globs for name in present)


def _began(rebalance: Row) -> int:
    began = rebalance["began_at"]
    return int(rebalance["event_time"] if began is None else min(began, rebalance["event_time"]))


def _changed_members(reader: Reader, rebalance: Row) -> list[Row]:
    """Return the sessions that causes name, or that began or ended in a rebalance."""
    named = {trigger["member_id"] for trigger in rebalance["triggers"] or [] if trigger["member_id"]}
    since, until = time_scalar(_began(rebalance)), time_scalar(rebalance["event_time"])

    def changed(rows: pa.Table) -> pa.ChunkedArray:
        def within(name: str) -> pa.ChunkedArray:
            inside = pc.and_kleene(pc.greater_equal(rows[name], since), pc.less_equal(rows[name], until))
            return pc.fill_null(inside, False)

        is_named = pc.is_in(rows["member_id"], pa.array(sorted(named), pa.string()))
        earlier = pc.less_equal(rows["joined_at"], until)
        return pc.or_(pc.or_(within("joined_at"), within("left_at")), pc.and_(is_named, earlier))

    where = {"cluster": rebalance["cluster"], "group_id": rebalance["group_id"]}
    sessions = reader.rows("members", where=where, keep=changed)
    present = {row["member_id"] for row in sessions}
    # The table may lack sessions that ended long ago; causes keep a client and its host.
    return sessions + [dict(trigger) for trigger in rebalance["triggers"] or [] if trigger["member_id"] not in present]


def of_findings(
    reader: Reader, findings: Iterable[Row], spans: AnnotationSpans = DEFAULT_SPANS
) -> dict[str, list[Row]]:
    """Return the annotations that are related to the opening of findings, by the id of the finding; some have none."""
    found: dict[str, list[Row]] = {}
    for finding in findings:
        opened = finding["opened_at"]
        if opened is None or not (annotations := near(reader, opened, opened, spans)):
            continue
        members = concerned_members(reader, annotations, partial(_named_members, reader, finding))
        happening = Happening(finding["cluster"], finding["group_id"], members, opened, opened)
        if rows := related(annotations, happening, spans):
            found[finding["finding_id"]] = rows
    return found


def _named_members(reader: Reader, finding: Row) -> list[Row]:
    """Return the sessions, around the opening of a finding, of the members and clients that it names."""
    opened = finding["opened_at"]
    where: dict[str, Any] = {
        "cluster": finding["cluster"],
        "group_id": finding["group_id"],
        "joined_at": Within(until_ms=opened + 1),
        "left_at": Within(since_ms=opened - _ENDED_BEFORE_MS, or_null=True),
    }
    members = {member["member_id"] for member in finding.get("members") or []}
    clients = {client["client"] for client in finding.get("clients") or []}
    return [
        row
        for column, names in (("member_id", members), ("client", clients))
        if names
        for row in reader.rows("members", where={**where, column: names})
    ]
