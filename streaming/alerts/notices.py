"""Shell: notices about single findings that opened or closed, and bundles of one group's notices. No I/O.

Texts from the tables are untrusted, so they are made printable and cut before anything else reads them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import msgspec

from streaming.alerts.alert_state import SentFinding
from streaming.tables.schema import Row
from streaming.terminal.escape import printable
from streaming.terminal.format import time_text
from streaming.views.rebalance_costs import Cost
from udfs.model.finding_names import NAMES

Status: TypeAlias = Literal["opened", "closed"]
LONGEST_NAME = 200
LONGEST_TEXT = 1_000
MOST_NAMED = 20
MOST_ANNOTATIONS = 8


@dataclass(frozen=True)
class Notice:
    """One finding that opened or closed, with texts that are safe to show.

    Attributes:
        cluster, group_id, kind: Cut; an empty group means the cluster itself. key: The uncut values.
        opened_at_ms, closed_at_ms: Epoch milliseconds.
        about: The queues, members, clients and subscriptions that it names, each list bounded, and its cause.
        cost: The cost of the group's rebalances in the hour up to the opening; None if not observed.
        annotations: Those that are related to it, from ``streaming.views.related_annotations``, the closest first.
    """

    finding_id: str
    status: Status
    cluster: str
    group_id: str
    kind: str
    severity: str
    message: str
    advice: str
    opened_at_ms: int
    closed_at_ms: int | None
    key: tuple[str, str, str]
    about: Mapping[str, object] = field(default_factory=dict)
    cost: Cost | None = None
    annotations: Sequence[Row] = ()

    def shown(self) -> dict[str, object]:
        """Return the values for templates and receivers, times in RFC 3339."""
        return {
            "finding_id": self.finding_id,
            "status": self.status,
            "cluster": self.cluster,
            "group_id": self.group_id,
            "kind": self.kind,
            "severity": self.severity,
            "message": self.message,
            "advice": self.advice,
            "opened_at": time_text(self.opened_at_ms),
            "closed_at": None if self.closed_at_ms is None else time_text(self.closed_at_ms),
            "about": self.about,
            "cost": None if self.cost is None else {**msgspec.structs.asdict(self.cost), "text": self.cost.text},
            "annotations": [_annotation(row) for row in self.annotations[:MOST_ANNOTATIONS]],
        }


def notice_of(row: Row, status: Status) -> Notice:
    """Return the notice of a row of ``findings``."""
    return Notice(
        finding_id=row["finding_id"],
        status=status,
        cluster=_cut(row["cluster"], LONGEST_NAME),
        group_id=_cut(row["group_id"], LONGEST_NAME),
        kind=_cut(row["kind"], LONGEST_NAME),
        severity=_cut(row["severity"], LONGEST_NAME),
        message=_cut(row["message"], LONGEST_TEXT),
        advice=_cut(row["advice"], LONGEST_TEXT),
        opened_at_ms=row["opened_at"] or 0,
        closed_at_ms=row["closed_at"],
        key=(row["cluster"] or "", row["group_id"] or "", row["kind"]),
        about=_printable({name: row.get(name) for name in NAMES}),
    )


def vanished(finding_id: str, last: SentFinding, now_ms: int) -> Notice:
    """Return the notice that a finding without a row in the tables has ended, built from what was last sent."""
    return Notice(
        finding_id=finding_id,
        status="closed",
        cluster=last.cluster,
        group_id=last.group_id,
        kind=last.kind,
        severity=last.severity,
        message="The tables no longer hold this finding.",
        advice="",
        opened_at_ms=last.opened_at_ms,
        closed_at_ms=now_ms,
        key=(last.cluster, last.group_id, last.kind),
    )


@dataclass(frozen=True)
class Bundle:
    """Notices that are sent as one message: those of one group.

    Attributes:
        notices: At least one, those opened first in front.
    """

    notices: Sequence[Notice]

    @property
    def identity(self) -> str:
        """Return an identity that stays the same whenever this message is sent again."""
        text = "\n".join(f"{notice.finding_id} {notice.status}" for notice in self.notices)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    @property
    def status(self) -> Status:
        """Return ``opened`` if any of them opened."""
        return "opened" if any(notice.status == "opened" for notice in self.notices) else "closed"

    @property
    def severity(self) -> str:
        """Return the worst severity."""
        present = {notice.severity for notice in self.notices}
        return next((severity for severity in ("critical", "warning", "info") if severity in present), "info")


def bundled(notices: Iterable[Notice], most: int) -> list[Bundle]:
    """Return each group's notices as messages of at most ``most``, in the order of clusters and groups."""
    groups: dict[tuple[str, str], list[Notice]] = {}
    for notice in notices:
        groups.setdefault(notice.key[:2], []).append(notice)
    found = []
    for key in sorted(groups):
        ordered = sorted(
            groups[key], key=lambda notice: (notice.status != "opened", notice.opened_at_ms, notice.finding_id)
        )
        found += [Bundle(ordered[first : first + most]) for first in range(0, len(ordered), most)]
    return found


def _annotation(row: Row) -> dict[str, object]:
    texts: dict[str, object] = {
        name: _cut(row[name], LONGEST_TEXT) for name in ("annotation_id", "kind", "text", "line")
    }
    times = {name: None if row[name] is None else time_text(row[name]) for name in ("began_at", "ended_at")}
    return texts | times | {"url": None if row["url"] is None else printable(row["url"])}


def _printable(value: Any) -> Any:
    """Return a value in which all texts are printable and cut."""
    if isinstance(value, str):
        return _cut(value, LONGEST_NAME)
    if isinstance(value, dict):
        return {name: _printable(part) for name, part in value.items()}
    return [_printable(part) for part in value[:MOST_NAMED]] if isinstance(value, list) else value


def _cut(text: str | None, longest: int) -> str:
    plain = printable(text or "")
    return plain if len(plain) <= longest else plain[: longest - 1] + "…"
