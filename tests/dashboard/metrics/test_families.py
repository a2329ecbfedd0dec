"""Families of metrics against the rows of the demo's tables, counted one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dashboard.metrics.families import Summed, families
from dashboard.metrics.file_sums import whole
from streaming.settings.model import Metrics
from streaming.tables.arrow_rows import to_arrow
from streaming.tables.schema import TABLES, Row
from streaming.tables.shared_columns import COST_NAMES
from streaming.views.reader import Reader
from streaming.views.widespread import WidespreadKind
from tests.dashboard.metrics.test_group_labels import metrics

Samples = Mapping[str, Mapping[tuple[str, ...], float]]


class GivenRows:
    """Reads rows that are given, as ``Reader`` does."""

    def __init__(self, **rows: Sequence[Row]) -> None:
        self._rows = rows

    def read(self, name: str, *, columns: Sequence[str]) -> pa.Table:
        return to_arrow(TABLES[name], self._rows.get(name, ())).select(list(columns))

    def newest_ms(self, name: str, column: str) -> int | None:
        return max((row[column] for row in self._rows.get(name, ())), default=None)


def samples(reader: Any, settings: Metrics, summed: Summed = whole, **more: Any) -> Samples:
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in families(reader, settings, summed, **more):
        for sample in family.samples:
            mine = found.setdefault(sample.name.removeprefix("rebalance_monitor_"), {})
            key = tuple(sample.labels.values())
            assert key not in mine, "a sample twice"
            mine[key] = sample.value
    return found


@pytest.fixture(scope="module")
def rows(demo_tables: Path) -> Mapping[str, list[Row]]:
    return {name: Reader(demo_tables).rows(name) for name in TABLES}


@pytest.fixture(scope="module")
def found(demo_tables: Path) -> Samples:
    return samples(Reader(demo_tables), metrics())


def test_rebalances_by_group_and_cause(found: Samples, rows: Mapping[str, list[Row]]) -> None:
    expected = Counter((row["cluster"], row["group_id"], row["trigger"]) for row in rows["rebalances"])
    assert found["rebalances_total"] == expected
    failed = Counter((row["cluster"], row["group_id"]) for row in rows["rebalances"] if row["status"] == "failed")
    assert {key: value for key, value in found["rebalances_failed_total"].items() if value} == failed


def test_outages_at_least_and_at_most(found: Samples, rows: Mapping[str, list[Row]]) -> None:
    expected: Counter[Any] = Counter()
    unknown: Counter[Any] = Counter()
    for row in rows["rebalances"]:
        for bound in ("min", "max"):
            expected[row["cluster"], row["group_id"], bound] += row[f"outage_{bound}_ms"] or 0
        unknown[row["cluster"], row["group_id"]] += row["outage_unknown_queues"] or 0
    assert sum(expected.values()) > 0
    for key, value in found["queue_outage_seconds_total"].items():
        assert value == pytest.approx(expected[key] / 1_000)
    assert found["queue_outages_unknown_total"] == unknown


def test_messages_read_twice(found: Samples, rows: Mapping[str, list[Row]]) -> None:
    repeated: Counter[Any] = Counter()
    for row in rows["rebalances"]:
        if any(row[name] is not None for name in COST_NAMES):
            for kind, name in (("known", "repeated_messages"), ("estimated", "repeated_estimated_messages")):
                repeated[row["cluster"], row["group_id"], kind] += row[name] or 0
    assert sum(repeated.values()) > 0
    assert found["repeated_messages_total"] == repeated


def test_messages_without_any_evidence_are_not_0() -> None:
    costs: list[tuple[str, list[int | None]]] = [
        ("known", [3, None, 7, None]),
        ("known", [5, 2, None, None]),
        ("waits", [None, None, 4, 9]),
        ("bytes", [None, 0, None, None]),
        ("nothing", [None, None, None, None]),
    ]
    history = [
        rebalance(group, at, **dict(zip(COST_NAMES, values, strict=True)))
        for at, (group, values) in enumerate(costs, 1_000)
    ]
    found = samples(GivenRows(rebalances=history), metrics())
    assert found["repeated_messages_total"] == {
        ("c", "known", "known"): 8,
        ("c", "known", "estimated"): 2,
        ("c", "waits", "known"): 0,
        ("c", "waits", "estimated"): 0,
        ("c", "bytes", "known"): 0,
        ("c", "bytes", "estimated"): 0,
    }
    assert {key: value for key, value in found["waiting_messages_total"].items() if value} == {
        ("c", "known", "known"): 7,
        ("c", "waits", "known"): 4,
        ("c", "waits", "estimated"): 9,
    }
    summed = samples(GivenRows(rebalances=history), metrics(max_groups=1))
    assert summed["repeated_messages_total"]["c", "other", "estimated"] == 0
    assert summed["waiting_messages_total"]["c", "other", "known"] == 4


def test_groups_as_they_are_now(found: Samples, rows: Mapping[str, list[Row]]) -> None:
    columns = {"members": "members", "queues": "queues", "idle_members": "idle_members", "spread_queues": "spread"}
    for name, column in {**columns, "unassigned_queues": "unassigned_queues"}.items():
        expected = {(row["cluster"], row["group_id"]): row[column] or 0 for row in rows["groups"]}
        assert found[f"group_{name}"] == expected
    assert sum(found["groups"].values()) == len(rows["groups"])


def test_findings_open_and_closed(found: Samples, rows: Mapping[str, list[Row]]) -> None:
    current = Counter(
        (row["cluster"], row["group_id"] or "", row["kind"], row["severity"])
        for row in rows["findings"]
        if row["closed_at"] is None
    )
    assert {key: value for key, value in found["open_findings"].items() if value} == current
    opened = Counter((row["cluster"], row["kind"], row["severity"]) for row in rows["findings"])
    assert found["findings_opened_total"] == opened
    assert sum(found["findings_closed_total"].values()) == sum(opened.values()) - sum(current.values())
    # A closed finding stays as 0, so that an alert on it resolves.
    assert {key for key, value in found["open_findings"].items() if not value}


def test_rejected_events_and_delay(found: Samples, rows: Mapping[str, list[Row]]) -> None:
    assert found["rejected_events_total"] == Counter((row["reason"],) for row in rows["rejected_events"])
    newest = {
        (row["cluster"],): (row["detected_at"] - row["event_time"]) / 1_000
        for row in sorted(rows["rebalances"], key=lambda row: (row["detected_at"], row["event_time"]))
    }
    assert found["source_delay_seconds"] == newest


@pytest.mark.parametrize("most", [0, 1, 5])
def test_beyond_the_bound_all_is_summed_and_nothing_lost(
    demo_tables: Path, found: Samples, rows: Mapping[str, list[Row]], most: int
) -> None:
    bounded = samples(Reader(demo_tables), metrics(max_groups=most))
    groups = {key[:2] for key in bounded["rebalances_total"] if key[1] != "other"}
    assert len(groups) == most
    names = ("rebalances_total", "queue_outage_seconds_total", "repeated_messages_total")
    for name in (*names, "group_members", "open_findings"):
        assert sum(bounded[name].values()) == pytest.approx(sum(found[name].values()))
    assert max(bounded["group_spread_queues"].values()) == max(found["group_spread_queues"].values())


def rebalance(group: str, detected_at: int, **more: object) -> Row:
    return {"cluster": "c", "group_id": group, "trigger": "member_left", "status": "completed", **more} | {
        "event_time": detected_at,
        "detected_at": detected_at,
    }


def test_counters_never_go_back_when_groups_and_rows_are_added() -> None:
    history = [rebalance(f"g{number % 7}", 1_000 + number, queues_moved=1) for number in range(40)]
    before: Samples = {}
    for end in range(1, len(history) + 1):
        now = samples(GivenRows(rebalances=history[:end]), metrics(max_groups=3))
        for name, values in before.items():
            if name.endswith("_total"):
                assert all(now[name][key] >= value for key, value in values.items())
        before = now
    assert before["rebalances_total"]["c", "other", "member_left"] == 22


def test_a_cluster_without_rebalances_has_a_label_of_its_own() -> None:
    group = {"system": "kafka", "state": "not_followed", "members": 2}
    quiet = [{**group, "cluster": name, "group_id": "g"} for name in ("c", "quiet")]
    found = samples(GivenRows(rebalances=[rebalance("g", 1_000)], groups=quiet), metrics())
    assert found["group_members"] == {("c", "g"): 2, ("quiet", "g"): 2}
    bounded = samples(GivenRows(rebalances=[rebalance("g", 1_000)], groups=quiet), metrics(max_clusters=1))
    assert bounded["group_members"] == {("c", "g"): 2, ("other", "other"): 2}


def test_kinds_that_a_source_made_up_are_bounded() -> None:
    made_up = [
        {"cluster": "c", "group_id": "g", "kind": f"kind-{number:03}", "severity": "info", "opened_at": number}
        for number in range(250)
    ]
    found = samples(GivenRows(findings=made_up), metrics())
    assert len(found["findings_opened_total"]) == 101
    assert found["findings_opened_total"]["c", "other", "info"] == 150


def test_tables_without_rows_have_families_without_samples() -> None:
    assert samples(GivenRows(), metrics()) == {}


def test_audits_by_verdict_and_groups_by_the_verdict_on_their_strategy() -> None:
    audit = {"cluster": "c", "group_id": "g", "queues_differing": 0}
    group = {"cluster": "c", "system": "kafka", "state": "stable"}
    found = samples(
        GivenRows(
            audits=[
                {**audit, "verdict": "agrees"},
                {**audit, "verdict": "differs", "queues_differing": 3},
                {**audit, "verdict": "differs", "queues_differing": 4},
            ],
            rebalances=[{"cluster": "c", "group_id": "g", "event_time": 1, "detected_at": 1}],
            groups=[
                {**group, "group_id": "g", "strategy_verdict": "contradicted"},
                {**group, "group_id": "h", "strategy_verdict": "proven", "state": "preparing_rebalance"},
                {**group, "group_id": "i", "strategy_verdict": None},
            ],
        ),
        metrics(),
    )
    assert found["audits_total"] == {("c", "g", "agrees"): 1, ("c", "g", "differs"): 2}
    assert found["audited_queues_differing_total"] == {("c", "g"): 7}
    assert found["group_strategy_contradicted"] == {("c", "g"): 1, ("c", "h"): 0}
    assert found["group_rebalancing"] == {("c", "g"): 0, ("c", "h"): 1, ("c", "i"): 0}
    assert found["groups_by_strategy_verdict"] == {("c", "contradicted"): 1, ("c", "proven"): 1}


def test_widespread_findings_by_cluster_and_kind_are_zero_where_few_groups_have_them() -> None:
    made_up = [
        finding_of("c1", "flapping"),
        finding_of("c2", "flapping"),
        finding_of("c3", "flapping", closed_at=1),
        finding_of("c1", "queue_unassigned"),
    ]
    many = [WidespreadKind("c1", "flapping", 4, 8)]
    found = samples(GivenRows(findings=made_up), metrics(), widespread=many, widespread_kinds=["flapping"])
    values = {("c1", "flapping"): 4, ("c2", "flapping"): 0, ("c3", "flapping"): 0}
    assert found["widespread_finding_groups"] == values


@pytest.mark.parametrize(("closed_at", "value"), [(None, 0), (1, 9)])
def test_in_a_sum_of_clusters_one_with_few_such_groups_counts_for_all(closed_at: int | None, value: int) -> None:
    made_up = [finding_of("c2", "flapping"), finding_of("c3", "flapping"), finding_of("c4", "flapping", closed_at)]
    many = [WidespreadKind("c2", "flapping", 4, 8), WidespreadKind("c3", "flapping", 5, 9)]
    settings = metrics(max_clusters=0)
    found = samples(GivenRows(findings=made_up), settings, widespread=many, widespread_kinds=["flapping"])
    assert found["widespread_finding_groups"] == {("other", "flapping"): value}


def finding_of(cluster: str, kind: str, closed_at: int | None = None) -> Row:
    about = {"finding_id": f"{cluster}-{kind}", "cluster": cluster, "kind": kind, "group_id": "g"}
    return {**about, "severity": "warning", "opened_at": 0, "closed_at": closed_at}


def test_a_group_without_a_number_of_members_has_no_sample_of_them() -> None:
    polled = {"cluster": "c", "group_id": "share", "system": "kafka", "state": "not_followed", "members": None}
    counted = polled | {"group_id": "connect", "members": 2}
    found = samples(GivenRows(groups=[row | {"queues": 0} for row in (polled, counted)]), metrics())
    assert found["group_members"] == {("c", "connect"): 2}
    assert found["group_queues"] == {("c", "connect"): 0, ("c", "share"): 0}
    found = samples(GivenRows(groups=[polled, counted]), metrics(max_groups=0))
    assert found["group_members"] == {("c", "other"): 2}


def test_a_streams_group_rebalances_while_its_members_reconcile() -> None:
    streams = {"cluster": "c", "system": "kafka", "state": "not_followed", "protocol": "streams", "members": 2}
    streams |= {"generation": 3, "epoch": 3, "assignment_epoch": 3}
    waits = {"calm": None, "stuck": "m has yet to revoke subtopology 0-1"}
    found = samples(GivenRows(groups=[streams | {"group_id": name, "waits": waits[name]} for name in waits]), metrics())
    assert found["group_rebalancing"] == {("c", "calm"): 0, ("c", "stuck"): 1}
    assert found["groups"] == {("c", "kafka", "not_followed"): 2}
