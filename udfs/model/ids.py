"""Core: ids of rebalances, findings and episodes, each a hash of the fields that identify it. No I/O."""

from __future__ import annotations

import hashlib


def rebalance_id(cluster: str, group: str, event_time: int, source: str, generation: int, ordinal: int) -> str:
    """Return a rebalance's id.

    Args:
        source: ``reported`` or ``counted``. ordinal: Its number among those with the same other fields, from 0.
    """
    return _hash(cluster, group, event_time, source, generation, ordinal)


def finding_id(cluster: str, group: str, kind: str, opened_at: int) -> str:
    """Return the id of a group's finding."""
    return _hash(cluster, group, kind, opened_at)


def episode_id(cluster: str, group: str, first_rebalance_id: str) -> str:
    """Return the id of an episode; a rebalance begins at most one."""
    return _hash(cluster, group, "episode", first_rebalance_id)


def _hash(*parts: str | int) -> str:
    # Each part is preceded by its length, so that no name can run into the next.
    text = "".join(f"{len(str(part))}:{part}" for part in parts)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
