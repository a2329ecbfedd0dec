"""Dashboard: the tables as metrics; counters are counted from rows, so they fall when retention drops rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from dashboard.metrics.budgets import of_budgets
from dashboard.metrics.file_sums import Summing, Sums, whole
from dashboard.metrics.group_labels import OTHER, GroupLabels, label
from dashboard.metrics.known_sources import known_rows, of_knowledge, of_platforms, unknown_of
from dashboard.metrics.lag import lag_by_group
from dashboard.reading.budget_use import BudgetUse
from streaming.settings.model import Metrics
from streaming.tables.arrow_rows import from_arrow_columns
from streaming.tables.schema import Row
from streaming.tables.shared_columns import COST_NAMES
from streaming.views.freshness import Freshness
from streaming.views.group_state_texts import STATE_COLUMNS, is_under_way
from streaming.views.platforms import PlatformState
from streaming.views.reader import Reader
from streaming.views.unwritten_findings import platform_findings, unwritten_rows
from streaming.views.widespread import WidespreadKind
from udfs.shard.source_gaps import KIND

PREFIX = "rebalance_monitor_"
GROUP = ("cluster", "group")
# The families are made from these tables.
TABLES_READ = ("rebalances", "groups", "findings", "rejected_events", "queue_progress", "audits")
# Causes and reasons are the monitor's own codes. Kinds of findings may come from a source: beyond this many they are
# summed.
MOST_KINDS = 100
_GAUGES = (
    ("members", "members", "Members of the group; none where they are not known."),
    ("queues", "queues", "Queues of subscribed topics."),
    ("idle_members", "idle_members", "Members without queues."),
    ("unassigned_queues", "unassigned_queues", "Subscribed queues without an owner."),
    ("spread_queues", "spread", "Most minus fewest queues of a member; of `other` the largest."),
)
_LARGEST = frozenset({"spread"})
_GROUPS = ("cluster", "group_id", "system", "strategy_verdict", *STATE_COLUMNS, *(gauge[1] for gauge in _GAUGES))

_OUTAGES = ("outage_min_ms", "outage_max_ms", "outage_unknown_queues")
_DECIDED = ("cluster", "group_id", "trigger", "status")
_REBALANCES = (
    *(*_DECIDED, "event_time", "detected_at", "queues_moved"),
    *(*_OUTAGES, *COST_NAMES),
)
# These are sums; those of messages are null if none was observed.
_SUMMED = ("number", "queues_moved", *_OUTAGES, *COST_NAMES)
_FINDINGS = ("finding_id", "cluster", "group_id", "kind", "severity", "opened_at", "closed_at")
_AUDITS = ["cluster", "group_id", "verdict", "queues_differing"]

Values = dict[tuple[str, ...], float]
Summed = Callable[[Reader, str, Sequence[str], Summing], Sums]


def families(
    reader: Reader,
    settings: Metrics,
    summed: Summed = whole,
    *,
    widespread: Sequence[WidespreadKind] = (),
    widespread_kinds: Collection[str] = (),
    freshness: Freshness | None = None,
    platforms: Sequence[PlatformState] = (),
    uses: Sequence[BudgetUse] = (),
    budget_s: float = 0,
) -> list[Metric]:
    """Return all families, their samples in the order of their labels.

    Args:
        widespread: What is open in many groups at once. widespread_kinds: Kinds that may be.
        freshness: Knowledge of the present; figures about the present of an unknown cluster are left out. None if
            everything is known.
        platforms: How far the pods of each platform are known.
        uses: What groups have used of their budget. budget_s: The budget; 0 for none.
    """
    rebalances = summed(reader, "rebalances", _REBALANCES, _of_rows)
    decided = _decided(rebalances["decided"])
    current = reader.read("groups", columns=[*dict.fromkeys(_GROUPS)])
    found = reader.read("findings", columns=[*_FINDINGS])
    first = _first_decided(decided)
    clusters = [cluster for cluster, _ in first]
    clusters += [cluster for _, cluster in sorted(_rows(found, "opened_at", "cluster"))]
    first += sorted(set(_rows(current, "cluster", "group_id")) - set(first))
    clusters += [cluster for cluster, _ in first]  # these come last, because none of their groups was decided yet
    names = dict.fromkeys(name for name in clusters if name is not None)
    clusters += [] if freshness is None else freshness.clusters  # clusters without groups come after all others
    groups = GroupLabels(first, clusters, settings)
    unknown = frozenset() if freshness is None else unknown_of(freshness, names)
    present = known_rows(current, unknown)
    lags = lag_by_group(reader, groups, unknown)
    return [
        *_of_rebalances(decided, groups),
        *_of_messages(decided, groups),
        _of_delays(known_rows(rebalances["newest"], unknown), groups),
        *_of_groups(present, groups),
        _gauge(
            "group_lag_messages",
            "Messages between commits and ends, of queues that moved within the last hour.",
            GROUP,
            lags.messages,
        ),
        _gauge(
            "group_lag_unknown_queues",
            "Queues that moved within the last hour and are not in the lag, because an offset of theirs is not known.",
            GROUP,
            lags.unknown_queues,
        ),
        _gauge(
            "group_lag_seconds",
            "How long the oldest unread message has waited; none where only a lower bound is known.",
            GROUP,
            lags.seconds,
        ),
        _gauge(
            "group_lag_min_seconds",
            "How long the oldest unread message has waited, at least.",
            GROUP,
            lags.least_seconds,
        ),
        _gauge(
            "group_deleted_in_seconds",
            "How long until retention deletes an unread message, as fast as starts of logs moved; 0 if it does now.",
            GROUP,
            lags.deleted_in_seconds,
        ),
        *_of_findings(found, groups, unknown, _unwritten(found, freshness, names, platforms), {*clusters} - {None}),
        _of_widespread(known_rows(found, unknown), widespread, widespread_kinds, groups),
        _of_rejected(summed(reader, "rejected_events", ["reason"], _of_reasons)["rejected"]),
        *_of_audits(summed(reader, "audits", _AUDITS, _of_verdicts)["audits"], current, groups),
        *([] if freshness is None else of_knowledge(freshness, names, groups, PREFIX)),
        *of_platforms(platforms, PREFIX),
        *of_budgets(uses, budget_s, groups, PREFIX),
    ]


def _of_rows(rows: pa.Table) -> Sums:
    """Return rebalances summed by group, cause and status, and each cluster's newest decisions."""
    times = {"first_decided_at": rows["detected_at"], "last_event_time": rows["event_time"]}
    columns = {name: rows[name] for name in (*_DECIDED, "queues_moved", *_OUTAGES, *COST_NAMES)} | times
    columns["number"] = pc.cast(pc.true_unless_null(rows["cluster"]), pa.int64())
    each = pa.table({name: columns[name] for name in (*_DECIDED, *_SUMMED, *times)})
    return {"decided": _decided(each), "newest": _newest(rows.select(["cluster", "detected_at", "event_time"]))}


def _decided(parts: pa.Table) -> pa.Table:
    """Return sums of rebalances over those of one group with one cause and status."""
    found = parts.group_by([*_DECIDED]).aggregate(
        [*((name, "sum") for name in _SUMMED), ("first_decided_at", "min"), ("last_event_time", "max")]
    )
    return found.select(
        [*_DECIDED, *(f"{name}_sum" for name in _SUMMED), "first_decided_at_min", "last_event_time_max"]
    ).rename_columns(parts.column_names)


def _newest(times: pa.Table) -> pa.Table:
    """Return for each cluster the event times of its newest decisions."""
    last = times.group_by("cluster").aggregate([("detected_at", "max")])
    times = times.join(last, "cluster")
    times = times.filter(pc.equal(times["detected_at"], times["detected_at_max"]))
    found = times.group_by(["cluster", "detected_at"]).aggregate([("event_time", "max")])
    return found.rename_columns(["cluster", "detected_at", "event_time"])


def _of_reasons(rows: pa.Table) -> Sums:
    return {"rejected": rows.group_by(["reason"]).aggregate([([], "count_all")])}


def _of_verdicts(rows: pa.Table) -> Sums:
    return {"audits": rows.group_by(_AUDITS[:3]).aggregate([([], "count_all"), ("queues_differing", "sum")])}


def _first_decided(decided: pa.Table) -> list[tuple[str, str]]:
    first: dict[tuple[str, str], int] = {}
    for cluster, group, at in _rows(decided, "cluster", "group_id", "first_decided_at"):
        first[cluster, group] = min(first.get((cluster, group), at), at)
    return sorted(first, key=lambda key: (first[key], key))


def _of_rebalances(decided: pa.Table, groups: GroupLabels) -> Iterable[Metric]:
    rebalances: Values = defaultdict(float)
    failed: Values = defaultdict(float)
    moved: Values = defaultdict(float)
    # Sums are in whole milliseconds, because sums of fractions depend on the order of rows, which could make a counter
    # fall.
    unread_ms: dict[tuple[str, ...], int] = defaultdict(int)
    unknown: Values = defaultdict(float)
    last: Values = {}
    names = (*_DECIDED, "number", "queues_moved", "last_event_time")
    for cluster, group, trigger, status, number, queues, at, least, most, of_unknown in _rows(
        decided, *names, *_OUTAGES
    ):
        key = groups.of(cluster, group)
        rebalances[*key, trigger or ""] += number
        failed[key] += number if status == "failed" else 0
        moved[key] += queues or 0
        for bound, outage in (("min", least), ("max", most)):
            unread_ms[*key, bound] += outage or 0
        unknown[key] += of_unknown or 0
        last[key] = max(last.get(key, 0.0), at / 1_000)
    yield _counter("rebalances", "Rebalances, by main cause.", (*GROUP, "trigger"), rebalances)
    yield _counter("rebalances_failed", "Rebalances whose strategy failed.", GROUP, failed)
    yield _counter("queues_moved", "Queues that moved from one owner to another.", GROUP, moved)
    yield _counter(
        "queue_outage_seconds",
        "For how long nobody read queues that changed their owner, summed over queues: at least and at most.",
        (*GROUP, "bound"),
        {key: outage / 1_000 for key, outage in unread_ms.items()},
    )
    yield _counter(
        "queue_outages_unknown",
        "Queues that changed or lost their owner, of which it is not known for how long nobody read them.",
        GROUP,
        unknown,
    )
    yield _gauge("last_rebalance_timestamp_seconds", "Event time of the last rebalance.", GROUP, last)


def _of_messages(decided: pa.Table, groups: GroupLabels) -> Iterable[Metric]:
    repeated: Values = defaultdict(float)
    waited: Values = defaultdict(float)
    for cluster, group, exact, estimated, waiting, waiting_estimated in _rows(
        decided, "cluster", "group_id", *COST_NAMES
    ):
        key = groups.of(cluster, group)
        # Both kinds begin at 0 with the first message of either, so that a rate includes the first message of the other
        # kind.
        if any(figure is not None for figure in (exact, estimated, waiting, waiting_estimated)):
            for kind, twice, late in (("known", exact, waiting), ("estimated", estimated, waiting_estimated)):
                repeated[*key, kind] += twice or 0
                waited[*key, kind] += late or 0
    yield _counter(
        "repeated_messages",
        "Messages that new owners of queues read again: known, and estimated where the position was not known.",
        (*GROUP, "kind"),
        repeated,
    )
    yield _counter(
        "waiting_messages",
        "Messages that waited for new owners: known, and estimated where the end of the queue was observed before.",
        (*GROUP, "kind"),
        waited,
    )


def _of_delays(times: pa.Table, groups: GroupLabels) -> Metric:
    newest: dict[str, tuple[int, int]] = {}
    for cluster, detected, at in _rows(times, "cluster", "detected_at", "event_time"):
        name = groups.cluster(cluster)
        newest[name] = max(newest.get(name, (0, 0)), (detected, at))
    values: Values = {(name,): max(0, detected - at) / 1_000 for name, (detected, at) in newest.items()}
    text = "From the cluster's newest decided rebalance to the batch that decided it."
    return _gauge("source_delay_seconds", text, ("cluster",), values)


def _of_groups(current: pa.Table, groups: GroupLabels) -> Iterable[Metric]:
    sums: dict[str, Values] = {column: defaultdict(float) for _, column, _ in _GAUGES}
    states: Values = defaultdict(float)
    under_way: Values = defaultdict(float)
    columns = ("cluster", "group_id", "system", *STATE_COLUMNS)
    rows = zip(_rows(current, *columns), _rows(current, *sums), strict=True)
    for (cluster, group, system, *shown), values in rows:
        row = dict(zip(STATE_COLUMNS, shown, strict=True))
        key = groups.of(cluster, group)
        states[groups.cluster(cluster), system or "", row["state"] or ""] += 1
        under_way[key] += is_under_way(row)
        for column, value in zip(sums, values, strict=True):
            if value is not None:
                before = sums[column][key]
                sums[column][key] = max(before, value) if column in _LARGEST else before + value
    for name, column, text in _GAUGES:
        yield _gauge(f"group_{name}", text, GROUP, sums[column])
    text = "1 while the group rebalances, and its lag is not reliable; of `other` how many do."
    yield _gauge("group_rebalancing", text, GROUP, under_way)
    yield _gauge("groups", "Groups, by state.", ("cluster", "system", "state"), states)


def _of_findings(
    found: pa.Table,
    groups: GroupLabels,
    unknown: Collection[str],
    unwritten: Iterable[Row],
    clusters: Collection[str | None],
) -> Iterable[Metric]:
    current: Values = defaultdict(float)
    opened: Values = defaultdict(float)
    closed: Values = defaultdict(float)
    columns = ("cluster", "group_id", "kind", "severity", "closed_at")
    kinds = dict.fromkeys(kind for _, kind in sorted(_rows(found, "opened_at", "kind")))
    own = {kind: label(kind) for kind in list(kinds)[:MOST_KINDS]}
    for cluster, group, any_kind, severity, closed_at in _rows(found, *columns):
        key, kind, name = groups.of(cluster, group), own.get(any_kind, OTHER), groups.cluster(cluster)
        # A closed finding stays as 0, so that its alerts resolve at once. The absence of a source is known while it
        # lasts.
        if cluster not in unknown or any_kind == KIND:
            current[*key, kind, severity or ""] += closed_at is None
        opened[name, kind, severity or ""] += 1
        closed[name, kind, severity or ""] += closed_at is not None
    for row in unwritten:
        # A job that is gone is a finding about all of its clusters.
        name = groups.cluster(row["cluster"]) if row["cluster"] in clusters else ""
        current[name, "", row["kind"], row["severity"]] += 1
    names = ("kind", "severity")
    yield _gauge("open_findings", "Open findings.", (*GROUP, *names), current)
    yield _counter("findings_opened", "Findings that opened.", ("cluster", *names), opened)
    yield _counter("findings_closed", "Findings that closed.", ("cluster", *names), closed)


def _unwritten(
    found: pa.Table, freshness: Freshness | None, clusters: Mapping[str, None], platforms: Sequence[PlatformState]
) -> list[Row]:
    """Return the findings that no job can write."""
    of_jobs = [] if freshness is None else unwritten_rows(freshness, _open(found), clusters)
    return [*of_jobs, *platform_findings(platforms)]


def _open(found: pa.Table) -> list[Row]:
    """Return the open findings, so that those of liveness are not counted twice."""
    rows = _rows(found, "finding_id", "closed_at")
    return [{"finding_id": name} for name, closed_at in rows if closed_at is None]


def _of_widespread(
    found: pa.Table, widespread: Sequence[WidespreadKind], kinds: Collection[str], groups: GroupLabels
) -> Metric:
    many = {(kind_open.cluster, kind_open.kind): kind_open.groups for kind_open in widespread}
    is_open: dict[tuple[str, str], bool] = defaultdict(bool)
    for cluster, kind, closed_at in _rows(found, "cluster", "kind", "closed_at"):
        if kind in kinds:
            is_open[cluster, kind] |= closed_at is None
    values: Values = defaultdict(float)
    alone = set()
    for place, is_now in is_open.items():
        key = groups.cluster(place[0]), label(place[1])
        values[key] += many.get(place, 0)
        if is_now and place not in many:
            alone.add(key)
    # Among the clusters that are summed as `other`, one with few groups in trouble counts for all.
    values |= dict.fromkeys(alone, 0.0)
    text = "Groups with a kind of findings that is widespread in their cluster; 0 where it is not."
    return _gauge("widespread_finding_groups", text, ("cluster", "kind"), values)


def _of_rejected(counted: pa.Table) -> Metric:
    rejected: Values = defaultdict(float)
    for reason, number in _rows(counted, "reason", "count_all"):
        rejected[(label(reason),)] += number
    return _counter("rejected_events", "Inputs that were not applied as sent, by reason.", ("reason",), rejected)


def _of_audits(counted: pa.Table, current: pa.Table, groups: GroupLabels) -> Iterable[Metric]:
    audits: Values = defaultdict(float)
    differing: Values = defaultdict(float)
    for cluster, group, verdict, number, queues in _rows(counted, *_AUDITS[:3], "count_all", "queues_differing_sum"):
        audits[*groups.of(cluster, group), verdict or ""] += number
        differing[groups.of(cluster, group)] += queues or 0
    by_verdict: Values = defaultdict(float)
    contradicted: Values = defaultdict(float)
    for cluster, group, strategy_verdict in _rows(current, "cluster", "group_id", "strategy_verdict"):
        if strategy_verdict is not None:
            by_verdict[groups.cluster(cluster), strategy_verdict] += 1
            contradicted[groups.of(cluster, group)] += strategy_verdict == "contradicted"
    yield _counter("audits", "Audits of generations, by verdict.", (*GROUP, "verdict"), audits)
    yield _counter("audited_queues_differing", "Queues that differed in audits.", GROUP, differing)
    text = "1 where audits contradict the group's strategy, else 0; of `other` how many they contradict."
    yield _gauge("group_strategy_contradicted", text, GROUP, contradicted)
    text = "Groups whose strategy is proven, contradicted or not recomputable."
    yield _gauge("groups_by_strategy_verdict", text, ("cluster", "strategy_verdict"), by_verdict)


def _rows(table: pa.Table, *names: str) -> Iterable[tuple[Any, ...]]:
    return zip(*from_arrow_columns(table, names), strict=True)


def _counter(name: str, text: str, labels: Sequence[str], values: Mapping[tuple[str, ...], float]) -> Metric:
    return _filled(CounterMetricFamily, name, text, labels, values)


def _gauge(name: str, text: str, labels: Sequence[str], values: Mapping[tuple[str, ...], float]) -> Metric:
    return _filled(GaugeMetricFamily, name, text, labels, values)


def _filled(
    kind: Callable[..., Any], name: str, text: str, labels: Sequence[str], values: Mapping[tuple[str, ...], float]
) -> Metric:
    family = kind(PREFIX + name, text, labels=labels)
    for key in sorted(values):
        family.add_metric(key, values[key])
    metric: Metric = family
    return metric
