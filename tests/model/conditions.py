"""How a history is played: into how many shards, how far behind its events, with which settings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Conditions:
    """The conditions of a run that are not in its events.

    Attributes:
        lag_ms: How far each batch is behind its newest event; None: a recording, read long after.
        settle_ms: The setting of this name.
        moves: The shard counts to which the state moves by an export: before batch 1, 2, and so on, over and over.
    """

    shards: int = 1
    lag_ms: int | None = None
    settle_ms: int = 0
    moves: tuple[int, ...] = ()


RECORDING = Conditions()
