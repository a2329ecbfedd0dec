"""Tables of many groups of one cluster, some of which have the same finding at the same time."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tests.streaming.tables.journals import T0, Journal, stable
from tests.streaming.views.story import rebalance, store
from udfs.model.journal import Body, FindingClosed, FindingOpened


class Troubled(NamedTuple):
    """Groups with a finding of a kind, from a time on and perhaps until another, in ms after T0."""

    groups: Iterable[str | None]
    kind: str = "flapping"
    since: int = 0
    until: int | None = None
    severity: str = "warning"


def names(first: int, last: int) -> list[str]:
    """Return the names of groups, both included."""
    return [f"g{number}" for number in range(first, last + 1)]


def write_groups(root: Path, groups: int, *troubles: Troubled, empty: int = 0, cluster: str = "c1") -> None:
    """Write groups with two members each, empty ones besides, and their findings."""
    history = Journal()
    changes = [history.change(0, stable(2), group, cluster) for group in names(1, groups)]
    changes += [history.change(0, stable(0), f"empty{number}", cluster) for number in range(empty)]
    for number, trouble in enumerate(troubles):
        for group in trouble.groups:
            name = f"{trouble.kind}-{number}-{group}"
            bodies: list[tuple[int, Body]] = [(trouble.since, opened(name, trouble))]
            if trouble.until is not None:
                bodies.append((trouble.until, FindingClosed(finding_id=name, closed_at=T0 + trouble.until)))
            changes += [history.change(at, body, group, cluster) for at, body in bodies]
    store(root, [rebalance("r1", 0, "group_created", None)], changes)


def opened(name: str, trouble: Troubled) -> FindingOpened:
    """Return the opening of one finding."""
    return FindingOpened(
        finding_id=name,
        finding=trouble.kind,
        severity=trouble.severity,  # type: ignore[arg-type]
        message=f"Message of {name}.",
        advice="Advice.",
        evidence=[],
        opened_at=T0 + trouble.since,
    )
