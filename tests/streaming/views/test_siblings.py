"""The same client in other groups, when it departed from one."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.views.reader import Reader
from streaming.views.siblings import HostSessions, Siblings, host_sessions, siblings_of
from tests.streaming.tables.journals import T0, Journal, joined, left
from tests.streaming.views.story import json_of, rebalance, run, store
from udfs.model.journal import LeftReason

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


def write_host(root: Path, *, how: LeftReason = "expired") -> None:
    """Have a client expire in ``orders`` at 60 s, and two others of its host in ``ended``; one in ``late`` is new."""
    history, on_host = Journal(), {"address": "10.0.0.7", "session_timeout_ms": 10_000}
    changes = []
    for member_id, group, joined_at, end in (
        ("a", "orders", 0, 60_000), ("b", "ended", 0, 63_000), ("c", "ended", 0, 58_000), ("d", "late", 55_000, None),
    ):  # fmt: skip
        changes.append(
            history.change(joined_at, joined(member_id, joined_at, client_id=member_id, **on_host), group=group)
        )
        if end is not None:
            reason: LeftReason = how if member_id == "c" else "expired"
            changes.append(history.change(end, left(member_id, joined_at, end, reason), group=group))
    store(root, [rebalance("r2", 60_000, "session_expired", "a", members_after=1)], changes)


def test_sessions_on_the_same_host_elsewhere_are_counted(tmp_path: Path) -> None:
    write_host(tmp_path)
    session = {"address": "10.0.0.7", "session_timeout_ms": 10_000}
    of_it = ("c1", "orders", T0 + 60_000)
    assert host_sessions(Reader(tmp_path), session, *of_it) == HostSessions("10.0.0.7", ended=2, went_on=0, groups=1)
    assert host_sessions(Reader(tmp_path), {"address": None}, *of_it) is None
    assert host_sessions(Reader(tmp_path), {"address": "10.0.0.8"}, *of_it) is None
    text = "all 2 sessions on host 10.0.0.7 in 1 other group ended with it (inferred)"
    assert text in run(tmp_path, "explain", "r2").stdout


def test_a_session_that_ended_in_order_did_not_end_with_its_host(tmp_path: Path) -> None:
    write_host(tmp_path, how="left")
    found = host_sessions(Reader(tmp_path), {"address": "10.0.0.7"}, "c1", "orders", T0 + 60_000)
    assert found == HostSessions("10.0.0.7", ended=1, went_on=1, groups=1)
