"""Dashboard: planned changes of groups against what they may do at most, foreseen as `what-if` does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dashboard.reading.objectives import State, unknown_of, worst_of
from dashboard.reading.opened_tables import OpenedTables
from streaming.settings.model import Settings
from streaming.settings.plan import Limit, Plan, PlanChange
from streaming.tables.errors import AmbiguousError, NotFoundError
from streaming.terminal.format import time_text
from streaming.views.foresight import Foresight, answer
from streaming.views.foresight_texts import headline
from streaming.views.known_groups import FoundGroup, found_group, load_custom_strategies, not_proven
from streaming.views.wished_changes import Wish, strategy_named
from udfs.group.state.assignment_diff import count_moves
from udfs.group.what_if.known_group import figures_of
from udfs.group.what_if.planned_change import batches, with_queues
from udfs.group.what_if.prediction import Prediction
from udfs.model.config import CoreConfig

PAUSE: Final = "max_pause"


@dataclass(frozen=True)
class PlannedObjective:
    """What a change does, by one objective.

    Attributes:
        value: What is foreseen: queues, members, or ms; None if unknown.
        most: What cannot be ruled out; None if nothing bounds it.
        why: Why it is not known, or from what; empty if it is certain.
        is_doubted: Whether the group itself is not known well enough to judge it.
    """

    name: str
    limit: Limit
    value: float | None = None
    most: float | None = None
    why: str = ""
    is_doubted: bool = False

    @property
    def state(self) -> State:
        """Return whether the change keeps it: critical if what is foreseen does not, ok only if nothing else can be."""
        if self.value is None or self.is_doubted:
            return "unknown"
        if self.value > self.limit.value:
            return "critical"
        if self.most is None or self.most > self.limit.value:
            return "unknown"
        return "warning" if self.limit.warn is not None and self.most > self.limit.warn else "ok"


@dataclass(frozen=True)
class JudgedChange:
    """A change of one group, judged.

    Attributes:
        cluster: Empty if the group is not known. text: What changes, in which group.
        doubts, assumes: Sentences on what the prediction cannot rely on, and on what it assumes.
        blind_state: The state if the cluster's present is unknown; None if it is known.
    """

    cluster: str
    group_id: str
    text: str
    objectives: Sequence[PlannedObjective]
    doubts: Sequence[str] = ()
    assumes: Sequence[str] = ()
    blind_state: State | None = None

    @property
    def state(self) -> State:
        """Return the worst state of its objectives; nothing is known of a group whose cluster is blind."""
        return self.blind_state or worst_of({objective.state for objective in self.objectives})


def judge(
    tables: OpenedTables, plan: Plan, settings: Settings, at_ms: int | None, cluster: str | None
) -> list[JudgedChange]:
    """Return what each change of a plan does, in the order of the file, each alone.

    Args:
        at_ms: The time of which the groups are taken; None for now. cluster: That of changes that name none.
    """
    return [_judged(tables, change, plan, settings, at_ms, cluster) for change in plan.change]


def _judged(
    tables: OpenedTables, change: PlanChange, plan: Plan, settings: Settings, at_ms: int | None, cluster: str | None
) -> JudgedChange:
    limits, core = plan.objectives.limits(), settings.core_config()
    try:
        found = found_group(tables, change.group, change.cluster or cluster, at_ms, core.vote_tie_order)
        load_custom_strategies(found, change.strategy)
        given = answer(tables, found, _wish(found, change), core, at_ms)
    except (NotFoundError, AmbiguousError) as error:
        unknown = [PlannedObjective(name, limit, why=str(error)) for name, limit in limits.items()]
        return JudgedChange(change.cluster or cluster or "", change.group, change.group, unknown)
    blind = unknown_of(tables, [tables.freshness.of(found.known.cluster)], at_ms)
    doubts = [f"{found.known.cluster} is {status.text}" for status in blind]
    when = f"at {time_text(at_ms)}" if at_ms is not None else "as last known" if blind else "now"
    objectives = [_objective(name, limit, given, core) for name, limit in limits.items()]
    # A lack of audits is a lack of proof; everything else makes the group another one than the tables have.
    is_contradicted = found.row["strategy_verdict"] == "contradicted"
    doubted = doubts + [text for text in found.doubts if is_contradicted or text != not_proven(found.row)]
    if doubted:
        objectives = [replace(each, is_doubted=True, why=doubted[0]) for each in objectives]
    return JudgedChange(
        found.known.cluster,
        change.group,
        headline(given, when),
        objectives,
        [*doubts, *found.doubts],
        given.assumes,
        settings.check.blind_state if blind else None,
    )


def _wish(found: FoundGroup, change: PlanChange) -> Wish:
    """Return what is left to change: what is already as it shall be is none, so a plan stays met once it is done."""
    there = len(found.known.members)
    wished = there if change.members is None else change.members
    strategy = change.strategy and strategy_named(found.known.system, change.strategy)
    return Wish(
        add=change.add + max(0, wished - there),
        like=change.like,
        remove=change.remove or ((str(there - wished),) if wished < there else ()),
        hosts=change.lose_host,
        racks=change.lose_rack,
        queues={topic: number for topic, number in change.queues.items() if not _has_queues(found, topic, number)},
        strategy=None if strategy == found.strategy else strategy,
        at_once=change.at_a_time if change.rolling_restart else 0,
        is_static=change.static,
    )


def _has_queues(found: FoundGroup, topic: str, number: int) -> bool:
    there = found.known.topics
    return topic in there and with_queues(found.known, {topic: number})[topic] == there[topic]


def _objective(name: str, limit: Limit, given: Foresight, core: CoreConfig) -> PlannedObjective:
    if name == PAUSE:
        return _pause(limit, given)
    value = _figures(given.prediction, given, core)[name]
    others = [_figures(each.prediction, given, core)[name] for each in given.alternatives]
    most = max([value, *others])
    return PlannedObjective(name, limit, value, most, "by ids that are not known" if most > value else "")


def _figures(prediction: Prediction, given: Foresight, core: CoreConfig) -> Mapping[str, int]:
    after = figures_of(prediction.after, core)
    return {
        "max_moved": sum(count_moves({}, each.moved).moved for each in prediction.rebalances),
        "max_stopped": max([*_restarting(given), *(len(each.stopped) for each in prediction.rebalances)], default=0),
        "max_idle": len(after.idle),
        "max_spread": after.balance.spread,
    }


def _restarting(given: Foresight) -> Iterator[int]:
    """Yield how many queues wait for members that restart at a time, where no others take them over."""
    change, known = given.change, given.prediction.before
    if change.at_once and (change.is_static or change.at_once >= len(known.members)):
        for batch in batches(given.prediction.after.members, change.at_once):
            ids = {member.member_id for member in batch}
            yield sum(ids >= set(holders) for holders in given.prediction.after.owners.values())


def _pause(limit: Limit, given: Foresight) -> PlannedObjective:
    """Return the longest standstill of one rebalance, with the time until lost members are noticed."""
    if any(_restarting(given)):
        return PlannedObjective(PAUSE, limit, why="queues of restarting members wait until these are back")
    if not any(each.stopped for each in given.prediction.rebalances):
        return PlannedObjective(PAUSE, limit, 0, 0)
    noticed, pauses = given.noticed_after_ms or 0, given.pauses
    unseen = "no such rebalance of this group was measured"
    if pauses is None:
        return PlannedObjective(PAUSE, limit, noticed or None, None, unseen)
    return PlannedObjective(PAUSE, limit, max(noticed, pauses.middle), noticed + pauses.most, pauses.source)
