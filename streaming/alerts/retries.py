"""Shell: when a failed message is sent again: a failing channel pauses, a refused message waits alone.

No I/O.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable
from typing import TypeAlias

from streaming.alerts.notices import Notice, Status

# A finding to be sent as opened or closed.
Pending: TypeAlias = tuple[str, Status]


class Backoff:
    """Decides when something may be tried again: after 1, 2, 4, ... times the first pause, up to the longest."""

    def __init__(self, first_ms: int, most_ms: int) -> None:
        self._first, self._most = first_ms, most_ms
        self._failures: dict[Hashable, int] = {}
        self._next_ms: dict[Hashable, int] = {}

    def may_try(self, key: Hashable, now_ms: int) -> bool:
        """Return whether it is not in a pause."""
        return now_ms >= self._next_ms.get(key, now_ms)

    def has_failed(self, key: Hashable) -> bool:
        """Return whether its last try failed."""
        return key in self._failures

    def failed(self, key: Hashable, now_ms: int, at_least_ms: int = 0) -> int:
        """Begin a pause; return its length."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        pause = min(self._most, max(at_least_ms, self._first << min(failures - 1, 30)))
        self._next_ms[key] = now_ms + pause
        return pause

    def succeeded(self, key: Hashable) -> None:
        """End the pauses."""
        self._failures.pop(key, None)
        self._next_ms.pop(key, None)

    def keep(self, keys: Collection[Hashable]) -> None:
        """Forget all others."""
        for key in self._failures.keys() - keys:
            self.succeeded(key)


class Retries:
    """The pauses of one channel, and of the findings that it refused."""

    def __init__(self, first_ms: int, most_ms: int) -> None:
        self._channel = Backoff(first_ms, most_ms)
        self._refused = Backoff(first_ms, most_ms)
        self._attempts: Counter[Pending] = Counter()

    def may_try(self, now_ms: int) -> bool:
        """Return whether the channel is not in a pause."""
        return self._channel.may_try("", now_ms)

    def is_refused(self, pending: Pending) -> bool:
        """Return whether the channel refused the last message with it, so that the next one contains only it."""
        return self._refused.has_failed(pending)

    def is_due(self, pending: Pending, now_ms: int) -> bool:
        """Return whether it is not in a pause of its own."""
        return self._refused.may_try(pending, now_ms)

    def attempts(self, notices: Iterable[Notice]) -> int:
        """Return the most failed attempts of any of them; fewer attempts come first, so that none starves others."""
        return max(self._attempts[_pending(notice)] for notice in notices)

    def failed(self, notices: Iterable[Notice], now_ms: int, at_least_ms: int) -> int:
        """Begin a pause of the channel, which failed with a message; return its length."""
        self._attempts.update(map(_pending, notices))
        return self._channel.failed("", now_ms, at_least_ms)

    def refused(self, notices: Iterable[Notice], now_ms: int, at_least_ms: int) -> int:
        """Begin a pause of the findings in a refused message; the channel works. Return the longest pause."""
        self._channel.succeeded("")
        pending = [_pending(notice) for notice in notices]
        self._attempts.update(pending)
        return max(self._refused.failed(key, now_ms, at_least_ms) for key in pending)

    def accepted(self) -> None:
        """End the pauses of the channel."""
        self._channel.succeeded("")

    def keep(self, pending: Collection[Pending]) -> None:
        """Forget messages that are no longer due."""
        self._refused.keep(pending)
        for key in self._attempts.keys() - pending:
            del self._attempts[key]


def _pending(notice: Notice) -> Pending:
    return notice.finding_id, notice.status
