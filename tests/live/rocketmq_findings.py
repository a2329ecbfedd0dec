"""What the core says of a group beside who holds what."""

from __future__ import annotations

from tests.simulation.core_run import CoreRun
from udfs.journal import FindingClosed, FindingOpened, Rebalance


def rebalances_of(run: CoreRun, group: str) -> list[Rebalance]:
    """Answer a group's rebalances, in order."""
    return sorted((row for row in run.rebalances if row.group_id == group), key=lambda row: row.generation)


def opened_in(run: CoreRun, group: str) -> set[str]:
    """Answer the kinds of all that was ever wrong with a group."""
    return {finding.finding for finding in _opened(run, group).values()}


def found_in(run: CoreRun, group: str) -> set[str]:
    """Answer the kinds of what is wrong with a group in the end."""
    bodies = [change.body for change in run.changes if change.group_id == group]
    closed = {body.finding_id for body in bodies if isinstance(body, FindingClosed)}
    return {finding.finding for key, finding in _opened(run, group).items() if key not in closed}


def _opened(run: CoreRun, group: str) -> dict[str, FindingOpened]:
    bodies = [change.body for change in run.changes if change.group_id == group]
    return {body.finding_id: body for body in bodies if isinstance(body, FindingOpened)}
