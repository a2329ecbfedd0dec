"""Shell: findings related to a rebalance: problems of its group at the time, and silence of its source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from streaming.tables.schema import Row
from streaming.terminal.format import time_text
from streaming.views.members import DEPARTURES
from streaming.views.reader import Reader, time_scalar
from streaming.views.rebalance_costs import rebalances_before

SOURCE_SILENT = "source_silent"
# The end of a session while a source was silent shows once it is back: sessions last up to two minutes by default.
SHOWN_AFTER_MS = 120_000
SHOWN = 8
CulpritKind: TypeAlias = Literal["client", "member"]
_REBALANCE = ("rebalance_id", "generation")


class FindingCulprit(NamedTuple):
    """A client or member that a finding names, and what it says of it; empty if it says nothing."""

    kind: CulpritKind
    name: str
    text: str = ""


def related_findings(reader: Reader, rebalance: Row) -> list[Row]:
    """Return the findings of a group that were open at a rebalance, and any silence of its source before it.

    Returns:
        Rows of ``findings``, those opened first in front, with their current or last message.
    """
    at = rebalance["event_time"]

    def around(rows: pa.Table) -> pa.ChunkedArray:
        opened = pc.less_equal(rows["opened_at"], time_scalar(at))
        current = pc.or_kleene(rows["closed_at"].is_null(), pc.greater(rows["closed_at"], time_scalar(at)))
        recent = pc.greater_equal(rows["closed_at"], time_scalar(at - SHOWN_AFTER_MS))
        recent = pc.and_kleene(pc.equal(rows["kind"], SOURCE_SILENT), recent)
        of_it = pc.or_kleene(rows["group_id"].is_null(), pc.equal(rows["group_id"], rebalance["group_id"]))
        return pc.and_kleene(of_it, pc.and_kleene(opened, pc.or_kleene(current, recent)))

    found = reader.rows("findings", where={"cluster": rebalance["cluster"]}, keep=around)
    return sorted(found, key=lambda row: (row["opened_at"], row["finding_id"]))


def silence_text(cause: Row, found: list[Row]) -> str | None:
    """Return that a member departed while its source was silent, or just after; None if it did not."""
    silences = [row for row in found if row["kind"] == SOURCE_SILENT]
    if cause["kind"] not in DEPARTURES or not silences:
        return None
    row = silences[-1]
    until = "now" if row["closed_at"] is None else time_text(row["closed_at"])
    away = f"{SOURCE_SILENT}: the source was silent from before {time_text(row['opened_at'])} to {until}"
    return f"{away}; the departure may be its consequence"


def lines(reported: dict[str, Any]) -> list[str]:
    """Return the findings as lines of a report, the first few of them."""
    found = reported["findings"]
    shown = [f"  {row['kind']}: {row['message']}" for row in found[:SHOWN]]
    if len(found) > SHOWN:
        shown.append(f"  … and {len(found) - SHOWN} more; --json lists them all")
    return ["", "Open then, as found last:", *shown] if shown else []


def rebalances_of(reader: Reader, findings: Iterable[Row]) -> Mapping[str, Row]:
    """Return the rebalance of each finding by its id: that with which it opened, else the last one within the hour.

    Returns:
        Some columns of ``rebalances``, with ``is_same_time``: whether the finding opened with it. A finding of a
        cluster has none.
    """
    found: dict[str, Row] = {}
    for finding, rebalance in rebalances_before(reader, findings, _REBALANCE):
        name = finding["finding_id"]
        before = found.get(name)
        if before is None or _place(rebalance) > _place(before):
            found[name] = rebalance | {"is_same_time": finding["opened_at"] == rebalance["event_time"]}
    return found


def _place(rebalance: Row) -> tuple[int, int]:
    return rebalance["event_time"], rebalance["generation"] or 0


def with_ways(reader: Reader, findings: Sequence[Row], most: int) -> list[Row]:
    """Return findings with ``began_with``, see ``rebalances_of``, and ``culprits``, at most so many of each."""
    rebalances = rebalances_of(reader, findings)
    return [
        row | {"began_with": rebalances.get(row["finding_id"]), "culprits": culprits(row)[:most]} for row in findings
    ]


def culprits(finding: Row) -> list[FindingCulprit]:
    """Return the clients that a finding names, the busiest first, then its members, each once."""
    clients: Sequence[Row] = sorted(finding.get("clients") or (), key=lambda part: -(part["rebalances"] or 0))
    found = [
        FindingCulprit("client", part["client"], f"caused {part['rebalances']}" if part["rebalances"] else "")
        for part in clients
    ]
    named = {part["client"] for part in clients}
    for part in finding.get("members") or ():
        if part["client"] not in named:
            found.append(FindingCulprit("member", part["member_id"], part["detail"] or ""))
    for part in (finding.get("subscriptions") or ())[:1]:  # the rarest one
        found += [FindingCulprit("member", member, "another subscription") for member in part["members"] or ()]
    for part in finding.get("queues") or ():
        if part["member_id"]:
            found.append(FindingCulprit("member", part["member_id"], (part["reason"] or "").replace("_", " ")))
    return [culprit for culprit in dict.fromkeys(found) if culprit.name]
