"""Shell: advice to a group as lines for people, and as one object for programs. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from streaming.history.advice import LEAST_PAUSE_MS, LEAST_REPEATED, LEAST_SHARE, Advice, GroupAdvice
from streaming.tables.schema import Row
from streaming.terminal.format import count, span_of_time, time_text

# Ids of rebalances that a person is shown; all are in the row.
_LISTED: Final = 5
_RECORDED: Final = ("rebalances", "queues_moved", "queue_pause_ms", "lasting_idle_members")


def heading(found: GroupAdvice, days: int | None) -> str:
    """Return what a group went through, and from when to when that is; ``days``: the last ones, None for a run's."""
    recorded = found.recorded
    name = f"{recorded['group_id']} in {recorded['cluster']}"
    if recorded["rebalances"] is None:
        return f"{name}: no advice, because {found.unknown}."
    pause = recorded["queue_pause_ms"]
    measured = "unknown" if pause is None else span_of_time(pause)
    span = "" if days is None else f", the last {count(days, 'day')}"
    return (
        f"{name}{span}: {count(recorded['rebalances'], 'rebalance')},"
        f" {count(recorded['queues_moved'], 'queue')} moved, queue-pause {measured}."
        f" They are from {time_text(recorded['covers_from'])} to {time_text(recorded['covers_to'])}."
        f"{_surplus(recorded)}"
    )


def _surplus(recorded: Row) -> str:
    idle = recorded.get("lasting_idle_members")
    if not idle:
        return ""
    return f" {count(idle, 'member')} had no queue for 95 % of that time: the group would do as well without."


def no_advice_text(found: GroupAdvice) -> str:
    """Return why there is no advice; empty where there is some."""
    if found.unknown is not None:
        return f"No advice: {found.unknown}."
    if found.advice:
        return ""
    return (
        f"No advice: none of {found.tried} policies would have saved {LEAST_SHARE:.0%} of the stopped queues"
        f" and with them {span_of_time(LEAST_PAUSE_MS)} of queue-pause or {LEAST_REPEATED:,} repeated messages."
    )


def saving_text(saved_pause_ms: int | None, saved_repeated: int | None, share: float | None = None) -> str:
    """Return what is saved, as estimates; ``share``: of the queues that stood still."""
    saved = []
    if saved_pause_ms is not None:
        of_all = "" if share is None else f" ({share:.0%})"
        saved.append(f"~{span_of_time(saved_pause_ms)} of queue-pause{of_all}")
    if saved_repeated is not None:
        saved.append(f"~{saved_repeated:,} messages read twice")
    return ", ".join(saved)


def entry_lines(advice: Advice) -> Iterator[tuple[str, str]]:
    """Yield the lines of an entry, each with its label."""
    saved = saving_text(advice.saved_pause_ms, advice.saved_repeated, advice.saved_share)
    yield "saves", f"{saved}: {count(advice.fewer_stops, 'queue')} would not have stopped"
    if advice.gone_rebalances:
        named = [rebalance_id[:8] for rebalance_id in advice.gone_rebalance_ids[:_LISTED]]
        more = advice.gone_rebalances - len(named)
        text = f"{', '.join(named)}{f' and {more} more' if more > 0 else ''}"
        yield "without", f"{count(advice.gone_rebalances, 'rebalance')}: {text}"
    yield from (("costs", cost) for cost in advice.costs)
    yield from (("set", setting) for setting in advice.settings)
    yield from (("assumes", assumed) for assumed in advice.assumes)
    yield "sure", f"{advice.sure}: {advice.sure_because}"


def advice_row(found: GroupAdvice) -> dict[str, Any]:
    """Return the advice to a group as one object."""
    return {
        "cluster": found.recorded["cluster"],
        "group_id": found.recorded["group_id"],
        "covers_from": found.recorded.get("covers_from"),
        "covers_to": found.recorded.get("covers_to"),
        "recorded": {name: found.recorded.get(name) for name in _RECORDED},
        "policies_tried": found.tried,
        "unknown": found.unknown,
        "advice": [advice._asdict() for advice in found.advice],
    }
