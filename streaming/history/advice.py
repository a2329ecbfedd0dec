"""Shell: which policy would have saved a group most, at what price, and how sure that is. No I/O.

It judges rows of ``replay_groups``, whoever made them. A policy is compared with what was recorded by one measure:
queues that stood still times what one cost in the group's own rebalances. Comparing an estimate with measured sums
would call a saving what is only the difference between a median and a mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from streaming.tables.schema import Row
from streaming.terminal.format import count, span_of_time

if TYPE_CHECKING:
    from streaming.history.replay_figures import Asked

# A saving is advice from a tenth of the whole on, and only if that is worth a change of configuration.
LEAST_SHARE: Final = 0.1
LEAST_PAUSE_MS: Final = 60_000
LEAST_REPEATED: Final = 1_000
# So many measured rebalances make a median fair, and so many good.
_FAIR, _GOOD = 5, 20
# Means differ by this much without anything having changed: the time that counts begins with a rebalance.
_LEAST_IDLE: Final = 0.05

# What is fixed for every group, the smaller change first; strategies of its system come beside these. A text that means
# nothing for a group, or for this release, is not tried.
POLICIES: Final = (
    *("static", "graceful", "session_timeout=30s", "session_timeout=60s", "session_timeout=2m"),
    *("join_delay=3s", "join_delay=10s", "static + session_timeout=60s"),
)


def asked_of(since_ms: int) -> Asked:
    """Return what is replayed for advice, since a time."""
    # Whoever reads what was replayed does not load what replays, which takes longer than the answer.
    from streaming.history.replay_figures import Asked, refusal

    return Asked(tuple(text for text in POLICIES if refusal(text) is None), all_strategies=True, since_ms=since_ms)


def is_for_advice(replay: Row) -> bool:
    """Return whether a row of ``replays`` is one that advice can be taken from: finished, of all groups."""
    is_whole = replay["finished_at"] is not None and not replay["groups_asked"]
    return bool(is_whole and replay["all_strategies"] and set(replay["policies"]) & set(POLICIES))


class Advice(NamedTuple):
    """What a policy would have saved a group.

    Attributes:
        saved_pause_ms, saved_repeated: Estimates; None if unknown. saved_share: The share of the queues that stood
            still. fewer_rebalances, fewer_moves, fewer_stops: Negative if there were more.
        gone_rebalance_ids: Recorded rebalances that would not have been, as the row lists them; ``gone_rebalances`` is
            their number. costs, settings, assumes: Sentences; settings say how it is set for the group's clients. sure:
            good, fair or weak; ``sure_because`` says why.
    """

    cluster: str
    group_id: str
    system: str
    policy: str
    saved_pause_ms: int | None
    saved_repeated: int | None
    saved_share: float
    fewer_rebalances: int
    fewer_moves: int
    fewer_stops: int
    gone_rebalances: int
    gone_rebalance_ids: Sequence[str]
    costs: Sequence[str]
    settings: Sequence[str]
    assumes: Sequence[str]
    sure: str
    sure_because: str


class GroupAdvice(NamedTuple):
    """Everything that can be advised to a group.

    Attributes:
        recorded: Its row without a policy. advice: The best first. unknown: Why nothing is known, or why too little is;
            None if all that was tried was comparable. tried: How many policies have figures.
    """

    recorded: Row
    advice: Sequence[Advice]
    tried: int
    unknown: str | None


def group_advice(rows: Sequence[Row]) -> GroupAdvice:
    """Return what to advise to one group; ``rows`` are those of one replay, among them the one without a policy."""
    recorded = next(row for row in rows if row["policy"] is None)
    if recorded["rebalances"] is None:
        return GroupAdvice(recorded, [], 0, recorded["unknown"])
    policies = [row for row in rows if row["policy"] is not None and row["queues_stopped"] is not None]
    refused = {row["unknown"] or "" for row in rows if row["policy"] is not None and row["queues_stopped"] is None}
    unknown = None
    if not policies:
        unknown = "; ".join(sorted(refused)) or "no policy was tried"
    elif recorded.get("move_pause_ms") is None and recorded.get("move_repeated_messages") is None:
        unknown = "what a moved queue costs this group was never measured: no saving can be named"
    found = [advice for row in policies if (advice := _advice(recorded, row)) is not None]
    found.sort(key=_rank)
    return GroupAdvice(recorded, found, len(policies), unknown)


def advice_by_group(rows: Iterable[Row]) -> list[GroupAdvice]:
    """Return what to advise to each group of a replay, by name; policies that advice never tries are left out."""
    tried = [row for row in rows if row["policy"] is None or _is_tried(row["policy"])]
    tried.sort(key=_group_of)
    return [group_advice(list(of_group)) for _, of_group in groupby(tried, _group_of)]


def _is_tried(policy: str) -> bool:
    return policy in POLICIES or (policy.startswith("strategy=") and "+" not in policy)


def _group_of(row: Row) -> tuple[str, str]:
    return row["cluster"], row["group_id"]


def _advice(recorded: Row, row: Row) -> Advice | None:
    fewer_moves = recorded["queues_moved"] - row["queues_moved"]
    fewer_stops = recorded["queues_stopped"] - row["queues_stopped"]
    pause = _saved(fewer_stops, recorded["move_pause_ms"])
    if pause is not None:
        pause -= row["waiting_pause_ms"] or 0
    repeated = _saved(fewer_moves, recorded["move_repeated_messages"])
    share = fewer_stops / recorded["queues_stopped"] if recorded["queues_stopped"] else 0.0
    is_worth = (pause or 0) >= LEAST_PAUSE_MS or (repeated or 0) >= LEAST_REPEATED
    if share < LEAST_SHARE or not is_worth or (pause or 0) < 0:
        return None
    sure, because = _certainty(recorded)
    return Advice(
        cluster=recorded["cluster"],
        group_id=recorded["group_id"],
        system=recorded["system"],
        policy=row["policy"],
        saved_pause_ms=pause,
        saved_repeated=repeated,
        saved_share=share,
        fewer_rebalances=recorded["rebalances"] - row["rebalances"],
        fewer_moves=fewer_moves,
        fewer_stops=fewer_stops,
        gone_rebalances=row["gone_rebalances"],
        gone_rebalance_ids=row.get("gone_rebalance_ids") or (),
        costs=list(_costs(recorded, row)),
        settings=row["settings"] or (),
        assumes=list(_assumed(recorded, row)),
        sure=sure,
        sure_because=because,
    )


def _rank(advice: Advice) -> tuple[object, ...]:
    """Return what sorts the largest saving first; of those that save as much, the smallest change."""
    place = POLICIES.index(advice.policy) if advice.policy in POLICIES else len(POLICIES)
    return -(advice.saved_pause_ms or 0), -(advice.saved_repeated or 0), place, advice.policy


def _saved(fewer_moves: int, each: float | None) -> int | None:
    return None if each is None else round(fewer_moves * each)


def _costs(recorded: Row, row: Row) -> Iterator[str]:
    yield from row.get("notes") or ()
    if row["added_rebalances"]:
        yield f"{count(row['added_rebalances'], 'rebalance')} at times at which there was none"
    for name, what in (("idle_members", "members without queues"), ("spread", "spread, most minus fewest queues")):
        before, after = recorded[name], row[name]
        if before is None or after is None:
            yield f"{name} is not known: {what}"
        elif after - before > _LEAST_IDLE:
            yield f"{what}: {after:.1f} instead of {before:.1f}, on average over time"


def _assumed(recorded: Row, row: Row) -> Iterator[str]:
    if recorded["move_pause_ms"] is not None:
        yield (
            f"a queue that stops stands for {span_of_time(recorded['move_pause_ms'])}, the median of"
            f" {count(recorded['measured_rebalances'], 'rebalance')} of this group"
        )
    if recorded["move_repeated_messages"] is not None:
        yield f"{recorded['move_repeated_messages']:,.0f} messages are read twice for one that moves: the median, too"
    if row["gone_rebalances"] or row["added_rebalances"]:
        yield "members come, go and fail as they did"


def _certainty(recorded: Row) -> tuple[str, str]:
    measured, lost = recorded["measured_rebalances"] or 0, recorded["not_reproduced"]
    replayed = f"{count(recorded['rebalances'], 'rebalance')} decided again"
    if lost:
        replayed += f", with {count(lost, 'difference')} from what was recorded"
    if lost * 10 > recorded["rebalances"] or measured < _FAIR:
        sure = "weak"
    else:
        sure = "good" if not lost and measured >= _GOOD else "fair"
    return sure, f"{replayed}; the cost of a move was measured in {measured}"
