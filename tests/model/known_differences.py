"""What the core does otherwise than the contract says in histories of the new protocol: features that stay off.

Each has a seed that shows it. Once the core does what the contract says, the test of that seed says so, and the feature
can be on.
"""

from __future__ import annotations

from typing import NamedTuple


class KnownDifference(NamedTuple):
    """One difference: what the core does, what the contract says, and a history that shows it."""

    reason: str
    seed: int
    features: frozenset[str]


def _shown_by(seed: int, *features: str, reason: str) -> KnownDifference:
    return KnownDifference(reason, seed, frozenset(features))


KNOWN_DIFFERENCES = {
    "redescribes": _shown_by(
        10,
        reason="a description that begins no epoch, such as another host, is not shown before the next epoch, and"
        " never if its member has departed by then (ruling 20); a vote after the target counts as one before it",
    ),
}
