"""Tables with more groups and minutes than a page lists."""

from __future__ import annotations

from pathlib import Path

from tests.browser.day_tables import MINUTE_MS, T0, rebalance, write_rows

GROUPS, MINUTES = 50, 600
COUNTS = {"members": 1, "queues": 1, "idle_members": 0, "unassigned_queues": 0, "spread": 0}


def name_of(number: int) -> str:
    """Return the name of a group; a lower number rebalanced more often."""
    return f"g{number:02}"


def write_many(root: Path) -> None:
    """Write ``GROUPS`` groups of which each rebalanced once more than the next, the first with ``MINUTES`` minutes."""
    state = COUNTS | {"cluster": "c", "system": "kafka", "state": "stable", "last_rebalance_at": T0}
    write_rows(root, "groups", [state | {"group_id": name_of(number)} for number in range(GROUPS)])
    rows = [
        rebalance("c", name_of(number), f"r{number}-{count}", T0 - count * 1_000, "m")
        for number in range(GROUPS)
        for count in range(GROUPS - number)
    ]
    write_rows(root, "rebalances", rows)
    minute = COUNTS | {"cluster": "c", "group_id": name_of(0), "rebalances": 1, "queues_moved": 1}
    write_rows(root, "group_minutes", [minute | {"minute": T0 - number * MINUTE_MS} for number in range(MINUTES)])
