"""Core: how long RocketMQ and MetaQ clients take to follow a change of their group, when it is not observed. No I/O.

Estimates are expectations: an event at an unknown time within a span is put in its middle. Clients that learn of a
change by themselves do so at different times, so a queue that moves between two live clients is paused only when the
new owner is the later one: on average a sixth of the span.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, Literal, TypeAlias

from udfs.model.systems import SystemProfile

# A client's rebalance loop (RebalanceService#waitInterval); it wakes at once when its broker notifies it (request code
# 40), and from 5.2.0 on it runs at most once in minInterval, which is also its wait after an unbalanced pass.
TICK_MS: Final = 20_000
MIN_INTERVAL_MS: Final = 1_000
_MIN_INTERVAL_SINCE = (5, 2, 0)
# Clients read new queues with the routes (ClientConfig#pollNameServerInterval) and assign them at the next tick.
ROUTE_REFRESH_MS: Final = 30_000
# 5.x delays the first pull of an added queue (RebalancePushImpl#dispatchPullRequest).
FIRST_PULL_DELAY_MS: Final = 500
# Ordered consumption: 5.x requests a refused lock again after this delay (RebalanceImpl, rebalanceLater); older
# versions wait for the next tick.
LOCK_RETRY_MS: Final = 500
# A dead owner's lock expires at the broker (RebalanceLockManager#REBALANCE_LOCK_MAX_LIVE_TIME); a live owner
# renews it every 20 s (ProcessQueue#REBALANCE_LOCK_INTERVAL).
LOCK_EXPIRES_MS: Final = 60_000
LOCK_RENEWAL_MS: Final = 20_000
# The broker scans for silent clients this often (ClientHousekeepingService), and notifies no member of an expiry.
EXPIRY_SCAN_MS: Final = 10_000
# A broker holds a waiting client's pull, and the client then pulls again, so a live client's last pull is never older
# than this (DefaultMQPushConsumerImpl#CONSUMER_TIMEOUT_MILLIS_WHEN_SUSPEND).
PULL_HELD_MS: Final = 30_000
# Clients persist consumed offsets at this interval (ClientConfig#persistConsumerOffsetInterval).
COMMIT_INTERVAL_MS: Final = 5_000
# MetaQ's clients watch ZooKeeper and take partitions over within about a second (measured with 1.4.6.2).
REOWN_MS: Final = 1_000
# Upper bound from assignment to first message: the client reads its position and fetches. It is longer for a member
# that owned nothing before, which may have just started (docs/kafka.md lists what real clients took).
TAKE_OVER_MS: Final = 1_000
FIRST_TAKE_OVER_MS: Final = 3_000
# The next poll, or the one after it, reports what a member did.
_REPORTED_AFTER_MS = 10_000

Loss: TypeAlias = Literal["alive", "left", "gone", "expired"]  # the fate of a queue's owner
_NOTIFIED = frozenset({"group_created", "member_joined", "member_left", "member_gone", "subscription_changed"})
_NUMBER = re.compile(r"\d+")


def learning_ms(system: SystemProfile, kinds: Collection[str]) -> int:
    """Return the span within which all members learn of changes of these kinds; each member learns at its own time.

    RocketMQ's brokers notify members when connections come and go and when topic subscriptions change, but not when
    members expire; any notification wakes all members. Brokers do not notify members of new queues.
    """
    if not system.has_rebalance_loop:
        return 0
    if "queue_count_changed" in kinds:
        return ROUTE_REFRESH_MS + TICK_MS
    return 0 if _NOTIFIED & set(kinds) else TICK_MS


def queue_wait_ms(system: SystemProfile, learning: int, loss: Loss, client_version: str | None, ordered: bool) -> int:
    """Estimate how long a queue has no owner.

    Args:
        learning: The result of ``learning_ms``. client_version, ordered: Properties of the new owner; an unknown
            version counts as new.
    """
    if not system.has_rebalance_loop:
        return REOWN_MS
    version = version_of(client_version)
    wait = learning // (6 if loss == "alive" else 2)
    if version is None or version >= _MIN_INTERVAL_SINCE:
        wait, retry = wait + MIN_INTERVAL_MS // 2 + FIRST_PULL_DELAY_MS, MIN_INTERVAL_MS
    elif version >= (5,):
        wait, retry = wait + FIRST_PULL_DELAY_MS, LOCK_RETRY_MS
    else:
        retry = TICK_MS
    if ordered and loss in ("alive", "gone"):
        # A member that left has unlocked its queues, and the locks of an expired member have expired before.
        wait += retry // 2
        wait += LOCK_EXPIRES_MS - LOCK_RENEWAL_MS // 2 if loss == "gone" else 0
    return wait


def longest_wait_ms(system: SystemProfile, learning: int, loss: Loss, client_version: str | None, ordered: bool) -> int:
    """Return the longest time a client takes to take a queue over, by its own timings.

    Args:
        learning: The result of ``learning_ms``. client_version, ordered: Properties of the new owner; an unknown
            version counts as old.
    """
    if not system.has_rebalance_loop:
        return 2 * REOWN_MS
    version = version_of(client_version)
    wait = max(learning, EXPIRY_SCAN_MS) + MIN_INTERVAL_MS + FIRST_PULL_DELAY_MS
    if ordered and loss in ("alive", "gone"):
        # The former owner's lock expires or is released; then the new owner requests a lock again.
        wait += LOCK_EXPIRES_MS + (TICK_MS if version is None or version < (5,) else MIN_INTERVAL_MS)
    return wait


def whole_wait_ms(learning: int, takers: int) -> int:
    """Estimate when the last of several new owners learns of the change: the latest of that many times in the span."""
    return learning * takers // (takers + 1)


def settled_after_ms(system: SystemProfile, kinds: Collection[str], ordered: bool, session_timeout_ms: int) -> int:
    """Return how long after a rebalance members may still own queues other than the computed ones."""
    if system.has_rebalance_loop:
        span = max(TICK_MS, learning_ms(system, kinds)) + _REPORTED_AFTER_MS
        return span + LOCK_EXPIRES_MS if ordered else span
    # The owner nodes of a dead consumer are deleted with its ZooKeeper session.
    return 2 * REOWN_MS + session_timeout_ms


def version_of(text: str | None) -> tuple[int, ...] | None:
    """Parse a client's version as its source reports it; return None if none is reported.

    Example:
        >>> version_of("V5_5_0"), version_of("4.9.7"), version_of("V4_9_4_SNAPSHOT"), version_of("?")
        ((5, 5, 0), (4, 9, 7), (4, 9, 4), None)
    """
    numbers = tuple(int(number) for number in _NUMBER.findall(text or "")[:3])
    return numbers or None
