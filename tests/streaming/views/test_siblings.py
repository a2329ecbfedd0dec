"""The same client in other groups, when it departed from one."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.views.reader import Reader
from streaming.views.siblings import Siblings, siblings_of
from tests.streaming.tables.journals import T0, Journal, joined, left
from tests.streaming.views.story import json_of, rebalance, run, store

_CLIENT = {"client_id": "billing", "host": "/10.0.0.7", "session_timeout_ms": 10_000}


def write(root: Path) -> None:
    """Have a client depart from ``orders`` at 60 s, from ``ended`` soon after, and from ``early`` long before."""
    history = Journal()
    changes = []
    for group, end in (("orders", 60_000), ("ended", 63_000), ("stays", None), ("early", 20_000)):
        changes.append(history.change(0, joined("a", 0, **_CLIENT), group=group))
        if end is not None:
            changes.append(history.change(end, left("a", 0, end), group=group))
    other = _CLIENT | {"host": "/10.0.0.8"}
    changes.append(history.change(0, joined("b", 0, **other), group="stays"))
    store(root, [rebalance("r2", 60_000, "member_gone", "a", members_after=1)], changes)


@pytest.mark.parametrize(
    ("session", "found"),
    [
        (_CLIENT, Siblings(ended=1, went_on=1)),
        (_CLIENT | {"host": "/10.0.0.9"}, None),
        (_CLIENT | {"client_id": None}, None),
        (_CLIENT | {"host": None}, None),
    ],
)
def test_sessions_of_the_same_client_elsewhere_are_counted(
    session: dict[str, object], found: Siblings | None, tmp_path: Path
) -> None:
    write(tmp_path)
    assert siblings_of(Reader(tmp_path), session, "c1", "orders", T0 + 60_000) == found


def test_explain_reports_them_with_the_departure(tmp_path: Path) -> None:
    write(tmp_path)
    assert "the same client in 2 other groups: its session ended with it in 1, went on in 1 (inferred)" in (
        run(tmp_path, "explain", "r2").stdout
    )
    (report,) = json_of(tmp_path, "explain", "r2")
    cause = report["causes"][0]  # type: ignore[index]
    assert cause["siblings"] == {"ended": 1, "went_on": 1}
