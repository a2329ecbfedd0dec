"""Core: the errors that cross a seam. No I/O."""

from __future__ import annotations


class MonitorError(Exception):
    """Root of every error that the monitor raises on purpose."""


class StrategyError(MonitorError):
    """A strategy that cannot answer; the group's rebalance fails with this reason.

    Args:
        code: A stable snake_case word, e.g. ``no_members``, ``no_common_strategy``.
        message: A sentence for people, where the real class has one: its text.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class StateVersionError(MonitorError):
    """State bytes that this version cannot read: newer, foreign or damaged."""


class InvariantError(MonitorError):
    """Something that cannot be; the job stops rather than write what is not true."""

    def __init__(self, where: str, expected: object, actual: object) -> None:
        super().__init__(f"{where}: expected {expected!r}, got {actual!r}")
