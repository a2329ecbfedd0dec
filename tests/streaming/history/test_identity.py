"""The identity law: decided again, a group's history gives what was recorded of it."""

from __future__ import annotations

import msgspec
import pytest

from streaming.history.group_history import found_history
from streaming.history.group_rows import GroupRows, UnknownPastError, group_rows
from streaming.history.identity import GenerationResult, compared
from streaming.tables.schema import Row
from tests.core_config import core_config
from tests.model.check import one_batch
from tests.model.core_tables import run_core
from tests.model.histories import FEATURES, history
from tests.simulation.given_tables import GivenTables
from tests.simulation.recorded_day import RULES
from udfs.group.replay.replay import History, replay
from udfs.model.config import CoreConfig

# What random histories have that tables do not: times of settings within a settling time; which events came late; the
# order of what happened in one millisecond, so that a member may have been two.
_NOT_RECORDED = frozenset(("settles", "late", "ties"))
# Of Kafka's groups known by their members' own events also: which queues members claimed or reported, and when a static
# member that changed its id within one rebalance had which.
_NOT_RECORDED_OF_MEMBERS = frozenset(("assignments", "cooperative", "deletes", "reports", "statics"))
# Of groups of a coordinator also: members' own reports and events of members that no generation had; deletions.
_NOT_RECORDED_OF_COORDINATORS = frozenset(("deletes", "reports", "unknown"))
QUICK, SLOW = 120, 4_000


def groups_of(tables: GivenTables) -> list[tuple[str, str]]:
    """Return the clusters and groups that have rebalances."""
    return sorted({(row["cluster"], row["group_id"]) for row in tables.rows("rebalances")})


def results_of(rows: GroupRows, config: CoreConfig) -> list[GenerationResult]:
    """Return what decides again as recorded, generation by generation."""
    return compared(rows, replay(found_history(rows, config.settle_ms).history, config))


def test_each_group_of_the_day_is_decided_again_as_recorded(day_tables: GivenTables) -> None:
    same, late, unknown = 0, [], []
    kinds = set()
    for cluster, group_id in groups_of(day_tables):
        rows = group_rows(day_tables, cluster, group_id)
        results = results_of(rows, RULES)
        assert {result.rebalance_id for result in results} == {row["rebalance_id"] for row in rows.rebalances}
        kinds.add((rows.system, rows.rebalances[0]["generation_source"]))
        same += sum(result.is_same for result in results)
        late += [result.differs for result in results if result.reason == "late_evidence"]
        unknown += [result for result in results if not result.is_same and result.reason is None]
    assert unknown == []
    # Late evidence is decided late once; the history has it in time. Even then only its causes differ.
    assert late == [("causes",)] * 4
    assert same == len(day_tables.rows("rebalances")) - len(late)
    assert kinds == {("kafka", "counted"), ("kafka", "reported"), ("metaq", "counted"), ("rocketmq", "counted")}


def check(seed: int) -> int:
    """Check the law on a random history; return how many generations it covers."""
    compared_generations = 0
    made = history(seed, frozenset(FEATURES) - _NOT_RECORDED)
    tables = GivenTables.of(run_core(one_batch(made), made.how))
    for cluster, group_id in groups_of(tables):
        rows = group_rows(tables, cluster, group_id)
        is_reported = rows.rebalances[0]["generation_source"] == "reported"
        left_out = _NOT_RECORDED_OF_COORDINATORS if is_reported else _NOT_RECORDED_OF_MEMBERS
        is_mixed = len({row["generation_source"] for row in rows.rebalances}) > 1
        if is_mixed or (rows.system == "kafka" and made.features & left_out):
            continue
        results = results_of(rows, core_config())
        compared_generations += len(results)
        assert [result for result in results if not result.is_same] == [], (seed, cluster, group_id)
    return compared_generations


def test_random_groups_are_decided_again_as_recorded() -> None:
    assert sum(check(seed) for seed in range(QUICK)) > 800


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_very_many_random_groups_are_decided_again_as_recorded() -> None:
    assert sum(check(seed) for seed in range(QUICK, SLOW)) > 20_000


def test_what_a_changed_history_decides_otherwise_is_named(day_tables: GivenTables) -> None:
    rows = group_rows(day_tables, "rocketmq-orders", "group-7")
    found = found_history(rows, 0).history
    # The first event of a member: without it nobody joins there.
    place = next(number for number, due in enumerate(found.events) if type(due.event).__name__ == "MemberJoined")
    without = msgspec.structs.replace(found, events=(*found.events[:place], *found.events[place + 1 :]))
    differing = [result for result in compared(rows, replay(without, RULES)) if not result.is_same]
    assert differing[0].event_time == found.events[place].event.event_time
    assert "members_after" in differing[0].differs or differing[0].differs == ("missing",)


def test_groups_of_other_kinds_have_no_history_yet(day_tables: GivenTables) -> None:
    rows = group_rows(day_tables, "kafka-main", "group-0")
    first = rows.rebalances[0]
    for changed, reason in (
        ({"strategy": "kafka.server.uniform"}, "a newer protocol of Kafka"),
        ({"observed_by": "polls"}, "known by polls alone"),
        ({"generation_source": "counted"}, "reported at some times, and counted at others"),
    ):
        with pytest.raises(UnknownPastError, match=reason):
            found_history(rows._replace(rebalances=[first | changed, *rows.rebalances[1:]]), 0)


def test_a_history_may_begin_after_any_rebalance(day_tables: GivenTables) -> None:
    same = 0
    for cluster, group_id in groups_of(day_tables):
        rebalances = group_rows(day_tables, cluster, group_id).rebalances
        third = rebalances[len(rebalances) // 3]["event_time"]
        rows = group_rows(day_tables, cluster, group_id, since_ms=third)
        assert rows.begins_at == third
        results = results_of(rows, RULES)
        assert [result for result in results if not result.is_same and result.reason is None] == []
        assert results[0].event_time == next(row["event_time"] for row in rebalances if row["event_time"] > third)
        same += len(results)
    assert same > 1_300


def test_a_history_begins_where_the_tables_are_complete(day_tables: GivenTables) -> None:
    name = {"cluster": "metaq-legacy", "group_id": "group-1"}
    rows = sorted(day_tables.rows("rebalances", where=name), key=lambda row: row["event_time"])
    times = [row["event_time"] for row in rows]

    def begins_at(kept: list[Row], dropped_before: int | None = None) -> int | None:
        tables = GivenTables({"rebalances": kept})
        dropped = {} if dropped_before is None else {"metaq-legacy": dropped_before}
        tables.dropped_before = lambda table: dropped if table == "members" else {}  # type: ignore[method-assign]
        return group_rows(tables, *name.values()).begins_at

    assert begins_at(rows) is None
    assert begins_at(rows[1:]) == times[1]  # it is older than its first row
    assert begins_at(rows, times[0]) is None
    assert begins_at(rows, times[0] + 1) == times[1]  # it may have had other members before
    older = [row | {"settings": None} for row in rows]  # of release 0.2.0
    assert begins_at([*older[:3], *rows[3:]]) == times[3]
    with pytest.raises(UnknownPastError, match="a release that did not keep what was set for it"):
        begins_at(older)
    with pytest.raises(UnknownPastError, match="no rebalance of group group-1 with what was set for it, since 2"):
        begins_at(rows, times[-1] + 1)
    with pytest.raises(UnknownPastError, match="no rebalances of group group-1"):
        begins_at([])


def test_an_empty_history_decides_nothing() -> None:
    replayed = replay(History(cluster="c", group_id="g", system="metaq", events=()), core_config())
    assert replayed.rebalances == []
