"""Findings beside a rebalance, and departures while the source was silent."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.views.related_findings import SHOWN_AFTER_MS
from tests.streaming.tables.journals import T0, Journal
from tests.streaming.views.story import json_of, rebalance, run, store
from udfs.model.journal import FindingClosed, FindingOpened

AT = 600_000


def found(name: str, kind: str, opened_at: int) -> FindingOpened:
    return FindingOpened(
        finding_id=name, finding=kind, severity="warning", message=f"{kind} it is.", advice="", evidence=[],
        opened_at=T0 + opened_at,
    )  # fmt: skip


def write(root: Path, *, back_at: int, kind: str = "session_expired") -> None:
    """Have the source be silent from 100 s on until ``back_at``, and a member depart at 600 s."""
    history = Journal()
    spans = [
        (None, "source_silent", 100_000, back_at),
        ("orders", "idle_members", 50_000, None),
        ("orders", "flapping", 50_000, AT - 1),
        ("other", "strategies_differ", 50_000, None),
    ]
    changes = []
    for group, name, opened_at, closed_at in spans:
        changes.append(history.change(opened_at, found(name, name, opened_at), group=group))
        if closed_at is not None:
            body = FindingClosed(finding_id=name, closed_at=T0 + closed_at)
            changes.append(history.change(closed_at, body, group=group))
    store(root, [rebalance("r2", AT, kind, "a", members_after=1)], changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("back_at", "kind", "is_of_outage"),
    [
        (AT - 1_000, "session_expired", True),
        (AT - SHOWN_AFTER_MS, "session_expired", True),
        (AT - SHOWN_AFTER_MS - 1, "session_expired", False),
        (AT + 5_000, "member_gone", True),
        (AT - 1_000, "member_joined", False),
    ],
)
def test_a_departure_in_an_outage_of_the_source_names_it(
    back_at: int, kind: str, is_of_outage: bool, tmp_path: Path
) -> None:
    write(tmp_path, back_at=back_at, kind=kind)
    (report,) = json_of(tmp_path, "explain", "r2")
    silence = report["causes"][0]["silence"]  # type: ignore[index]
    assert ("source_silent: the source was silent from before" in (silence or "")) == is_of_outage
    text = run(tmp_path, "explain", "r2").stdout
    assert ("; source_silent: the source was silent" in text) == is_of_outage
    # Findings that were open then are listed beside it: those of its group, and of its cluster.
    assert "  idle_members: idle_members it is." in text
    assert "flapping it is" not in text
    assert "strategies_differ" not in text
