"""Core: whether a group rebalances more often than is usual for it. No I/O.

A group is compared with its own history: the rebalances of the last ``flapping_within_ms`` with the usual number in an
earlier span of that length. A group that is younger than two such spans is compared with the first half of its history.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Collection, Container, Sequence

import msgspec

from udfs.model.config import CoreConfig

# At most this many causing clients are remembered per rebalance, first those that caused earlier ones.
MAX_CLIENTS = 8
# Rebalances that left the window are counted in thousandths, because old ones count less than one.
_ONE = 1_000


class Usual(msgspec.Struct, frozen=True, array_like=True):
    """The group's memory of rebalances older than the window.

    Attributes:
        since: Time of the first observed rebalance.
        at: Time of the newest rebalance in ``weight``.
        weight: Thousandths of rebalances; each loses half its weight in ``flapping_history_ms``.
    """

    since: int
    at: int
    weight: int = 0


class Flapping(msgspec.Struct, frozen=True, kw_only=True):
    """More rebalances than usual.

    Attributes:
        rebalances: Within the last ``within_ms``. usual: The usual number in an earlier span of that length.
        closes_at: When too few of them are left within the span. episode: The kind of the episode that the newest is
            part of.
    """

    rebalances: int
    usual: float
    within_ms: int
    closes_at: int
    episode: str | None = None


def remember(recent: Sequence[int], usual: Usual | None, at: int, config: CoreConfig) -> tuple[list[int], Usual]:
    """Return the history of a group after one more rebalance.

    Args:
        recent: Times of the newest rebalances, ascending. usual: The older rebalances; None if there are none.

    Returns:
        Both, with at most ``flapping_always`` times; older ones are counted in ``Usual``.
    """
    times = [*recent, at]
    usual = usual or Usual(times[0], times[0])
    kept = [time for time in times if time > at - config.flapping_within_ms][-config.flapping_always :]
    for time in times[: len(times) - len(kept)]:
        usual = Usual(usual.since, max(usual.at, time), _decayed(usual, max(usual.at, time), config) + _ONE)
    return kept, usual


def remember_clients(former: Sequence[Sequence[int]], clients: Collection[str], recent: int) -> list[list[int]]:
    """Return which clients caused each of the remembered rebalances, after one more; clients by their marks.

    Args:
        clients: Clients that caused the newest rebalance. recent: The number of rebalances remembered now.
    """
    before = {mark for marks in former for mark in marks}
    marks = sorted({mark_of(client) for client in clients}, key=lambda mark: (mark not in before, mark))
    kept = [*([[]] * recent), *map(list, former), sorted(marks[:MAX_CLIENTS])]
    return kept[len(kept) - recent :]


def mark_of(client: str) -> int:
    """Return the 32 bits that identify a client among the clients of its group."""
    return zlib.crc32(client.encode("utf-8", "surrogatepass"))


def flapping(
    recent: Sequence[int],
    usual: Usual | None,
    config: CoreConfig,
    planned: Container[int] = (),
    *,
    goes_on: bool = False,
) -> Flapping | None:
    """Return how a group flaps at its newest rebalance; None if it does not, or was not observed for long enough.

    Rebalances at the times ``planned`` count only in what is usual. It flaps if the window has at least
    ``flapping_rebalances``, and ``flapping_factor`` times as many as usual; with ``flapping_always`` of them it flaps
    regardless of the usual number. While the story goes on for which it flapped, it flaps at any rate.
    """
    if not recent or usual is None:
        return None
    at = recent[-1]
    age = at - usual.since
    within_ms = min(config.flapping_within_ms, age // 2)
    counted = [time for time in recent if time not in planned]
    number = sum(time > at - within_ms for time in counted)
    before_ms = age - within_ms
    earlier = sum(time <= at - within_ms for time in recent)
    before = (_decayed(usual, at, config) / _ONE + earlier) / _mean_span(before_ms, config)
    expected = before * within_ms
    least = max(config.flapping_rebalances, math.ceil(config.flapping_factor * expected))
    if age < config.flapping_after_ms or least > config.flapping_always:
        within_ms, least = config.flapping_within_ms, config.flapping_always
        number = len(counted)
    if goes_on:
        least = min(least, number)
    if number < max(1, least):
        return None
    return Flapping(rebalances=number, usual=expected, within_ms=within_ms, closes_at=counted[-least] + within_ms)


def _decayed(usual: Usual, at: int, config: CoreConfig) -> int:
    half_lives = (at - usual.at) / config.flapping_history_ms
    return round(usual.weight * math.exp2(-half_lives))


def _mean_span(span_ms: int, config: CoreConfig) -> float:
    """Return the effective span before the window, as old rebalances count less; at least a millisecond."""
    mean_ms = config.flapping_history_ms / math.log(2)
    return max(1.0, mean_ms * -math.expm1(-span_ms / mean_ms))
