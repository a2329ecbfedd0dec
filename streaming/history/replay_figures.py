"""Shell: what replays come to, group by group, as rows of ``replay_groups``. No Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from streaming.history.group_rows import GroupRows, PastTables, group_rows
from streaming.history.policy_outcomes import PolicyOutcome, PolicyOutcomes, estimated, outcomes_of
from streaming.history.policy_settings import setting_lines
from streaming.history.policy_texts import parts_of, policy_of, strategies_of
from streaming.tables.errors import NotFoundError
from streaming.tables.replay_tables import MAX_GONE, REPLAY_GROUPS
from streaming.tables.schema import Row
from streaming.terminal.format import count
from streaming.views.measured_rebalances import Measured, measured
from udfs.model.config import CoreConfig


class Asked(NamedTuple):
    """What is decided again.

    Attributes:
        policies: As written. all_strategies: Whether each strategy of a group's system is a policy, too.
        since_ms, until_ms: Bounds of the rebalances; None for no bound.
    """

    policies: tuple[str, ...] = ()
    all_strategies: bool = False
    since_ms: int | None = None
    until_ms: int | None = None


class GivenRows:
    """Tables that have the rows of one group."""

    def __init__(self, rows: Mapping[str, list[Row]], dropped: Mapping[str, Mapping[str, int]]) -> None:
        self._rows = rows
        self._dropped = dropped

    def rows(self, name: str, *, where: object = None) -> list[Row]:  # noqa: ARG002 - all rows are the group's
        return self._rows[name]

    def dropped_before(self, name: str) -> Mapping[str, int]:
        return self._dropped.get(name, {})


def replay_figures(
    tables: PastTables,
    cluster: str,
    group_id: str,
    asked: Asked,
    config: CoreConfig,
    system: str | None = None,
    proceed: Callable[[], object] = lambda: None,
) -> list[Row]:
    """Return the rows of a group: first what was recorded, then each policy; what is unknown is null, with the reason.

    Args:
        system: The group's, where it has no rebalances. proceed: Called before each policy; what it raises ends this.
    """
    unknown = dict.fromkeys(name for name in REPLAY_GROUPS.names if name not in ("replay_id", "started_at"))
    named = unknown | {"cluster": cluster, "system": system, "group_id": group_id}
    try:
        rows = group_rows(tables, cluster, group_id, asked.since_ms)
        named["system"] = rows.system
        policies = list(dict.fromkeys((*asked.policies, *(strategies_of(rows) if asked.all_strategies else ()))))
        found, refused = _outcomes(rows, policies, asked.until_ms, config, proceed)
    except NotFoundError as error:
        return [named | {"policy": policy, "unknown": str(error)} for policy in (None, *asked.policies)]
    costs = _Costs(found.recorded, found.pause_each)
    by_policy = {outcome.policy: _figures(found, outcome, costs) for outcome in found.outcomes}
    for policy, figures in by_policy.items():
        figures["settings"] = [] if policy is None else list(setting_lines([policy], rows))
    return [
        named | {"policy": policy} | by_policy.get(policy, {"unknown": refused.get(policy)})
        for policy in (None, *policies)
    ]


def refusal(text: str) -> str | None:
    """Return why a text is no policy of any group; whether one has such a topic, member or strategy is its question."""
    try:
        list(parts_of(text))
    except NotFoundError as error:
        return str(error)
    return None


def _outcomes(
    rows: GroupRows,
    policies: Sequence[str],
    until_ms: int | None,
    config: CoreConfig,
    proceed: Callable[[], object],
) -> tuple[PolicyOutcomes, dict[str | None, str]]:
    """Return what the group's policies come to, and why those of others have no outcome."""
    refused: dict[str | None, str] = {}
    for text in policies:
        try:
            policy_of(text, rows)
        except NotFoundError as error:
            refused[text] = str(error)
    fitting = [text for text in policies if text not in refused]
    try:
        return outcomes_of(rows, fitting, config, until_ms, proceed), refused
    except NotFoundError:
        if not fitting:
            raise
    # One of them cannot be replayed: the others are, each by itself.
    found = outcomes_of(rows, (), config, until_ms)
    for text in fitting:
        proceed()
        try:
            found.outcomes.extend(outcomes_of(rows, [text], config, until_ms).outcomes[1:])
        except NotFoundError as error:
            refused[text] = str(error)
    return found, refused


class _Costs:
    """What recorded rebalances cost.

    Attributes:
        pause_each: Queue-pause of a moved queue. repeated_each: Messages read twice for a queue that got an owner.
        repeated: Messages read twice, summed; None if never known. repeated_unknown: How many rebalances that moved
            queues lack it. outage_ms: The longest outage of a queue; None if no rebalance has one.
    """

    def __init__(self, recorded: Sequence[Row], pause_each: Measured | None) -> None:
        self.pause_each = pause_each
        known = [(row, number) for row in recorded if (number := _repeated(row)) is not None]
        self.repeated = sum(number for _, number in known) if known else None
        self.repeated_unknown = sum(bool(row["queues_moved"]) and _repeated(row) is None for row in recorded)
        given = ((number, (row["queues_moved"] or 0) + (row["queues_assigned"] or 0)) for row, number in known)
        self.repeated_each = measured((number / queues, None) for number, queues in given if queues)
        outages = [row["queue_outage_max_ms"] for row in recorded if row["queue_outage_max_ms"] is not None]
        self.outage_ms = max(outages, default=None)


def _repeated(row: Row) -> int | None:
    exact, estimated = row["repeated_messages"], row["repeated_estimated_messages"]
    return None if exact is None and estimated is None else (exact or 0) + (estimated or 0)


def _figures(found: PolicyOutcomes, outcome: PolicyOutcome, costs: _Costs) -> Row:
    is_recorded = outcome.policy is None
    repeated = costs.repeated if is_recorded else estimated(costs.repeated_each, outcome.moved)
    gone = outcome.gone
    return {
        "covers_from": found.since,
        "covers_to": found.until,
        "rebalances": outcome.rebalances,
        "queues_moved": outcome.moved,
        "queues_stopped": outcome.stopped,
        "queue_pause_ms": outcome.queue_pause_ms,
        "waiting_pause_ms": outcome.waiting_pause_ms,
        "repeated_messages": repeated,
        "queue_outage_max_ms": costs.outage_ms if is_recorded else None,
        "idle_members": outcome.idle,
        "lasting_idle_members": outcome.lasting_idle,
        "spread": outcome.spread,
        "move_pause_ms": estimated(costs.pause_each, 1),
        "move_repeated_messages": None if costs.repeated_each is None else costs.repeated_each.middle,
        "measured_rebalances": 0 if costs.pause_each is None else costs.pause_each.rebalances,
        "gone_rebalances": len(gone),
        "gone_rebalance_ids": list(gone[-MAX_GONE:]),
        "added_rebalances": len(outcome.added),
        "notes": list(outcome.notes),
        "not_reproduced": len(found.not_reproduced),
        "unknown": "; ".join(_unknown(outcome, costs, repeated)) or None,
    }


def _unknown(outcome: PolicyOutcome, costs: _Costs, repeated: int | None) -> list[str]:
    """Return what is not known of an outcome, and why."""
    reasons = []
    if outcome.stopped is None:
        reasons.append("queues_stopped, queue_pause_ms: not every generation can be decided, queues_moved is a part")
    elif outcome.queue_pause_ms is None:
        reasons.append("queue_pause_ms: no rebalance that moved queues has a measured pause")
    elif outcome.pause_unknown:
        reasons.append(f"queue_pause_ms: {count(outcome.pause_unknown, 'rebalance')} without a measured pause left out")
    if repeated is None:
        reasons.append("repeated_messages: no rebalance has commits and positions that show them")
    elif outcome.policy is None and costs.repeated_unknown:
        reasons.append(f"repeated_messages: {count(costs.repeated_unknown, 'rebalance')} left out, not known of them")
    if outcome.policy is not None:
        reasons.append("queue_outage_max_ms: how long single queues would stand is not computed under a policy")
    elif costs.outage_ms is None:
        reasons.append("queue_outage_max_ms: no rebalance has an outage with an upper bound")
    if outcome.idle is None:
        reasons.append("idle_members: not known of any rebalance")
    if outcome.spread is None:
        reasons.append("spread: not known of any rebalance")
    return reasons
