"""Core: the errors that cross module boundaries. No I/O."""

from __future__ import annotations

import shlex


class MonitorError(Exception):
    """Root of every error that the monitor raises itself."""


class StrategyError(MonitorError):
    """A strategy that cannot assign; the group's rebalance fails with this reason.

    Args:
        code: A stable snake_case code, e.g. ``no_members``, ``no_common_strategy``.
        message: A sentence for people; the real class's text if it has one.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class StateVersionError(MonitorError):
    """State bytes that this version cannot read: written by a newer one, or damaged."""

    _remedy = ""  # in addition to the message

    def at(self, checkpoint: str, cluster: str, shard: int) -> StateVersionError:
        """Return the same error with the owner of the state and the remedy."""
        remedy = self._remedy.format(checkpoint=shlex.quote(checkpoint))
        return type(self)(f"checkpoint {checkpoint}, cluster {cluster!r}, shard {shard}: {self}{remedy}")


class StateDamagedError(StateVersionError):
    """State bytes that differ from the written ones; none of them is used."""

    _remedy = (
        ". It was not used. Remedy: `rebalance-monitor state rollback --checkpoint {checkpoint}`, then "
        "start the job again: it repeats its last batch from the state before it; nothing is lost or duplicated. "
        "Where that is impossible, the command names the alternative: an older state to export, or a backup."
    )


class PacketDamagedError(MonitorError):
    """A packet that arrived at its shard changed; the batch fails and is read again."""


class InvariantError(MonitorError):
    """A broken invariant; the job stops rather than write wrong rows."""

    def __init__(self, where: str, expected: object, actual: object) -> None:
        super().__init__(f"{where}: expected {expected!r}, got {actual!r}")
