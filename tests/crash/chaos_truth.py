"""The truth about a run of chaos, and the rows of `rebalances` that contradict it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_ENDS = ("member_left", "session_expired", "member_gone")
# Longer than two polls: between three clocks lie two whole ones.
_CLOCKS_THAT_SEE = 3
_RETRY = "%RETRY%"
Row = dict[str, Any]
Span = tuple[int, int]


@dataclass
class Life:
    """One member's; times are epoch ms.

    Attributes:
        begun_ms: When its process was started.
        ended_ms: When it was killed, stopped, or failed by itself; None: it lives.
        ending: `is killed` or `stops`.
        listed: From when to when the cluster itself had it, without a break.
        given_up: How often the cluster gave it up while it lived, because its session ran out on a busy machine.
    """

    begun_ms: int
    ended_ms: int | None = None
    ending: str | None = None
    listed: list[Span] = field(default_factory=list)
    given_up: int = 0


@dataclass
class Truth:
    """The truth about a whole run.

    Attributes:
        lives: By member id.
        clocks: When the collector ended its rounds, sorted.
        queues_moved: When queues may really have come or gone.
        stops_expire: When a member that stops cannot say so, because what it would say it to is away.
    """

    lives: Mapping[str, Life]
    clocks: Sequence[int]
    queues_moved: Sequence[Span] = ()
    stops_expire: Sequence[Span] = ()

    def contradictions(self, rebalances: Sequence[Row]) -> list[str]:
        """Return the rebalances that one group's rows lack, and those that never happened."""
        rows = sorted(rebalances, key=lambda row: row["generation"])
        found = list(self._about_rows(rows))
        for member, life in self.lives.items():
            found += self._about(member, life, rows)
        return found

    def owed(self) -> list[str]:
        """Return the members whose join must be reported: the cluster had them for longer than two polls."""
        return [member for member, life in self.lives.items() if self._is_owed(life)]

    def _is_owed(self, life: Life) -> bool:
        return any(
            bisect_left(self.clocks, until) - bisect_right(self.clocks, since) >= _CLOCKS_THAT_SEE
            for since, until in life.listed
        )

    def _about_rows(self, rows: Sequence[Row]) -> Iterator[str]:
        if [row["generation"] for row in rows] != list(range(1, len(rows) + 1)):
            yield f"generations {[row['generation'] for row in rows]}"
        for row in rows:
            at_ms = _ms(row)
            if row["status"] != "completed":
                yield f"generation {row['generation']} {row['status']}: {row['error']}"
            for trigger in row["triggers"]:
                kind = trigger["kind"]
                if kind == "group_created":
                    is_true = row["generation"] == 1
                elif kind == "queue_count_changed":
                    # A broker makes a group's retry topic at the first heartbeat of a member.
                    is_retry = (trigger.get("topic") or "").startswith(_RETRY)
                    is_true = is_retry or is_within(at_ms, self.queues_moved)
                else:
                    is_true = trigger["member_id"] in self.lives and kind in ("member_joined", *_ENDS)
                if not is_true:
                    yield f"generation {row['generation']} at {at_ms}: nothing did {trigger}"

    def _about(self, member: str, life: Life, rows: Sequence[Row]) -> Iterator[str]:
        reported = [
            (_ms(row), trigger["kind"]) for row in rows for trigger in row["triggers"] if trigger["member_id"] == member
        ]
        joins = [at_ms for at_ms, kind in reported if kind == "member_joined"]
        ends = [(at_ms, kind) for at_ms, kind in reported if kind in _ENDS]
        story = f"{member} {life}: reported {reported}"
        if not joins and self._is_owed(life):
            yield f"never joined: {story}"
        if len(joins) > 1 + life.given_up:
            yield f"joined too often: {story}"
        departed = 0 if life.ended_ms is None else 1
        if joins and len(ends) < len(joins) - 1 + departed:
            yield f"never went: {story}"
        if len(ends) > len(joins) - 1 + departed:
            yield f"went too often: {story}"
        if any(at_ms < life.begun_ms for at_ms in joins):
            yield f"joined too early: {story}"
        if life.ended_ms is None or not ends or len(ends) < len(joins):
            return
        at_ms, kind = ends[-1]
        if at_ms < life.ended_ms:
            yield f"went too early: {story}"
        if kind not in self._ends_of(life):
            yield f"went otherwise: {story}"

    def _ends_of(self, life: Life) -> Collection[str]:
        assert life.ended_ms is not None
        if life.ending == "stops" and not is_within(life.ended_ms, self.stops_expire):
            return ("member_left", "member_gone")
        if life.ending == "stops":
            return _ENDS
        return ("session_expired", "member_gone")


def is_within(at_ms: int, spans: Sequence[Span]) -> bool:
    """Return whether a moment lies in one of the spans."""
    return any(since <= at_ms <= until for since, until in spans)


def merged(spans: Sequence[Span], gap_ms: int) -> list[Span]:
    """Return spans, in order, as one where only a short while lies between them."""
    found: list[Span] = []
    for since, until in sorted(spans):
        if found and since - found[-1][1] <= gap_ms:
            found[-1] = (found[-1][0], max(until, found[-1][1]))
        else:
            found.append((since, until))
    return found


def _ms(row: Row) -> int:
    return round(row["event_time"].timestamp() * 1_000)
