"""The health of a group: one rule for commands, pages and API."""

from __future__ import annotations

import pytest

from streaming.views.group_health import health


@pytest.mark.parametrize(
    ("state", "worst", "unassigned", "expected"),
    [
        ("stable", None, 0, "ok"),
        ("stable", None, None, "ok"),
        ("stable", None, 1, "warning"),
        ("stable", "info", 0, "info"),
        ("stable", "info", 1, "warning"),
        ("stable", "warning", 0, "warning"),
        ("stable", "critical", 0, "critical"),
        ("failed", None, 0, "critical"),
        ("failed", "info", 1, "critical"),
        ("not_followed", None, 0, "unknown"),
        ("not_followed", "warning", 0, "warning"),
        ("empty", None, 0, "ok"),
    ],
)
def test_the_worst_counts(state: str, worst: str | None, unassigned: int | None, expected: str) -> None:
    assert health(state=state, worst=worst, unassigned_queues=unassigned) == expected
