"""Dashboard: whether the tables meet the objectives: findings, rates, outages, delays."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import pyarrow.compute as pc

from dashboard.reading.opened_tables import OpenedTables
from streaming.machine.clock import now_ms
from streaming.settings.model import Check, Widespread
from streaming.tables.arrow_rows import from_arrow_columns
from streaming.tables.schema import Row
from streaming.views.freshness import ClusterFreshness
from streaming.views.group_health import SEVERITIES
from streaming.views.known_clusters import first_by_cluster, known_clusters
from streaming.views.platforms import unknown_texts
from streaming.views.reader import Reader, holds_at, time_scalar
from streaming.views.widespread import WidespreadKind, widespread_kinds

State: TypeAlias = Literal["ok", "warning", "critical", "unknown"]
_WORST_FIRST: Sequence[State] = ("critical", "unknown", "warning")
# Objectives are named in this order; each is ``NAME_warning`` and ``NAME_critical`` in the settings.
OBJECTIVES = ("rebalances_per_hour", "queue_outage_s", "queue_outage_s_per_day", "source_delay_s")
# Its critical value is a budget: what a group may spend in the day that ends now, whatever the window of the others.
BUDGET = "queue_outage_s_per_day"
DAY_MS = 86_400_000
_HOUR_MS = 3_600_000
_COLUMNS = (
    "cluster",
    "group_id",
    "event_time",
    "detected_at",
    "outage_min_ms",
    "outage_max_ms",
    "outage_unknown_queues",
)


def worst_of(states: Collection[State]) -> State:
    """Return the worst state, ok if there is none; what is not known is worse than a warning."""
    return next((state for state in _WORST_FIRST if state in states), "ok")


@dataclass(frozen=True)
class Figure:
    """The worst value of one objective.

    Attributes:
        warning, critical: The least value of this state; 0 for never.
        unknown_queues: Queues for which only a lower bound is in the value: it may prove a missed objective, and no met
            one.
    """

    name: str
    value: float
    warning: float
    critical: float
    cluster: str | None = None
    group_id: str | None = None
    unknown_queues: int = 0

    @property
    def state(self) -> State:
        """Return the severity of the value."""
        if self.critical and self.value >= self.critical:
            return "critical"
        if self.warning and self.value >= self.warning:
            return "warning"
        return "unknown" if self.unknown_queues and (self.warning or self.critical) else "ok"

    @property
    def is_budget(self) -> bool:
        """Return whether its critical value is a budget, of which a part is used and the rest is left."""
        return self.name == BUDGET and self.critical > 0


@dataclass(frozen=True)
class Evaluation:
    """The result of an evaluation.

    Attributes:
        findings: Open findings that count, the most severe first.
        widespread: What is open in many groups at once; such findings do not count.
        blind: The clusters whose present is not known, or not wholly.
        blind_state: The state for those: ``unknown``, or ``critical``.
        recordings: The clusters that are recordings, which are evaluated at their end.
        info: The number of open findings of severity info, which do not count.
        platforms: What is not known of pods; it decides nothing, so it does not count.
    """

    findings: Sequence[Row]
    figures: Sequence[Figure]
    widespread: Sequence[WidespreadKind] = ()
    blind: Sequence[ClusterFreshness] = ()
    blind_state: State = "unknown"
    recordings: Sequence[ClusterFreshness] = ()
    info: int = 0
    platforms: Sequence[str] = ()

    @property
    def state(self) -> State:
        """Return the worst state. Findings open when a cluster was last known do not count for its present."""
        unknown = {found.cluster for found in self.blind if found.state == "unknown"}
        states = {_state_of(row) for row in self.findings if row["cluster"] not in unknown}
        states |= {figure.state for figure in self.figures}
        states |= {self.blind_state} if self.blind else set()
        return worst_of(states)

    @property
    def kinds(self) -> Mapping[tuple[str, str], int]:
        """Return the number of open findings of each severity and kind, the most severe first."""
        return Counter((row["severity"], row["kind"]) for row in self.findings)


def evaluate(
    tables: OpenedTables,
    objectives: Check,
    widespread: Widespread,
    at_ms: int | None,
    *,
    cluster: str | None = None,
    group: str | None = None,
    ignored: Iterable[str] = (),
) -> Evaluation:
    """Return the open findings and the state of the objectives at a time.

    Args:
        widespread: What is open in many groups at once, and does not count.
        at_ms: The time of the evaluation; rates are those of ``objectives.window_ms`` before it. None for now.
        cluster, group: Restrict the evaluation to these.
        ignored: Kinds of findings that do not count, in addition to those of severity info.
    """
    at = now_ms() if at_ms is None else at_ms
    where = {"cluster": cluster, "group_id": group}
    left_out = {*ignored, *objectives.ignored_findings}
    found = tables.rows("findings", where=where, keep=holds_at("opened_at", "closed_at", at))
    among = [
        spread for spread in widespread_kinds(tables, widespread, at, cluster=cluster) if spread.kind not in left_out
    ]
    counted = [
        row
        for row in found
        if row["severity"] != "info" and row["kind"] not in left_out and not any(spread.has(row) for spread in among)
    ]
    counted.sort(key=lambda row: (SEVERITIES.index(row["severity"]), row["kind"], row["opened_at"], row["finding_id"]))
    names = {cluster} if cluster is not None else known_clusters(tables, group) or known_clusters(tables)
    # A cluster without groups is in no table yet, but it is known.
    names |= {*tables.freshness.clusters} if cluster is None and group is None else set()
    reported = [tables.freshness.of(name) for name in sorted(names)] or [tables.freshness.nothing()]
    blind = unknown_of(tables, reported, at_ms)
    ends: dict[str, int | None] = {status.cluster: _end_of(status, at, at_ms is None) for status in reported}
    ends.update({status.cluster: None for status in blind if status.state == "unknown"})
    return Evaluation(
        counted,
        _figures(tables, objectives, at, ends, where),
        among,
        blind=blind,
        blind_state=objectives.blind_state,
        recordings=[status for status in reported if status.state == "recording"],
        info=sum(row["severity"] == "info" for row in found),
        platforms=unknown_texts(tables.platforms) if at_ms is None else (),
    )


def unknown_of(reader: Reader, reported: Sequence[ClusterFreshness], at_ms: int | None) -> list[ClusterFreshness]:
    """Return what is unknown of clusters at a time, or now."""
    if at_ms is None:
        found = [status.unknown_now() for status in reported]
    else:
        first, now = first_by_cluster(reader), now_ms()
        found = [status.unknown_at(at_ms, first.get(status.cluster), now) for status in reported]
    return [status for status in found if status is not None]


def _state_of(finding: Row) -> State:
    return "critical" if finding["severity"] == "critical" else "warning"


def _end_of(status: ClusterFreshness, at_ms: int, is_present: bool) -> int:
    """Return where the window of the objectives ends: for the present of a recording at its end."""
    if is_present and status.state == "recording" and status.known_until is not None:
        return status.known_until
    return at_ms


def _figures(
    reader: Reader,
    objectives: Check,
    at_ms: int,
    ends: Mapping[str, int | None],
    where: Mapping[str, str | None],
) -> list[Figure]:
    """Return the figures of the window that ends at a time; ``ends``: for a cluster another one, None for no figure."""
    window_ms = objectives.window_ms
    times = [end for end in ends.values() if end is not None] or [at_ms]
    rebalances: Counter[tuple[str, str]] = Counter()
    delays: dict[str, int] = defaultdict(int)
    # For each objective of outages: these by group, and the queues that have no upper bound.
    spent: dict[str, tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]] = {
        name: (Counter(), Counter()) for name in ("queue_outage_s", BUDGET)
    }
    since_ms = min(times) - max(window_ms, DAY_MS)
    for name, group, at, detected, least, most, without_bound in rebalances_between(
        reader, since_ms, max(times), where
    ):
        end = ends.get(name, at_ms)
        if end is None or at > end:
            continue
        for objective, span_ms in (("queue_outage_s", window_ms), (BUDGET, DAY_MS)):
            if at > end - span_ms:
                # Values that cannot be ruled out count: an objective is met only if the worst of them meets it.
                spent[objective][0][name, group] += max(least or 0, most or 0)
                spent[objective][1][name, group] += without_bound or 0
        if at > end - window_ms:
            rebalances[name, group] += 1
            delays[name] = max(delays[name], (detected or at) - at)
    hours = window_ms / _HOUR_MS
    worst = {
        "rebalances_per_hour": _largest({key: number / hours for key, number in rebalances.items()}),
        **{
            name: _largest({key: number / 1_000 for key, number in outages.items()})
            for name, (outages, _) in spent.items()
        },
        "source_delay_s": _largest({(name, None): delay / 1_000 for name, delay in delays.items()}),
    }
    figures = [
        Figure(
            name,
            value,
            getattr(objectives, f"{name}_warning"),
            getattr(objectives, f"{name}_critical"),
            cluster,
            group_id,
        )
        for name, (value, cluster, group_id) in worst.items()
    ]
    return [_with_unknown(figure, *spent[figure.name]) if figure.name in spent else figure for figure in figures]


def _with_unknown(figure: Figure, outages: Mapping[Any, int], unknown: Mapping[Any, int]) -> Figure:
    """Return the figure of a group whose outage is not known where no known one misses the objective."""
    if not (figure.warning or figure.critical):
        # No objective is missed, so the value stays the largest, with what is unknown of the same group.
        return replace(figure, unknown_queues=unknown.get((figure.cluster, figure.group_id), 0))
    queues, cluster, group = _largest(unknown)
    if figure.state != "ok" or not queues or cluster is None:
        return figure
    return replace(
        figure, value=outages[cluster, group] / 1_000, cluster=cluster, group_id=group, unknown_queues=int(queues)
    )


def _largest(values: Mapping[tuple[str, str | None], float]) -> tuple[float, str | None, str | None]:
    if not values:
        return 0.0, None, None
    (cluster, group), value = min(values.items(), key=lambda entry: (-entry[1], entry[0][0], entry[0][1] or ""))
    return value, cluster, group


def rebalances_between(
    reader: Reader, since_ms: int, until_ms: int, where: Mapping[str, str | None]
) -> Iterator[tuple[Any, ...]]:
    """Yield cluster, group, times and outages of rebalances after a time and up to another one."""
    for block in reader.blocks("rebalances", columns=_COLUMNS, where=where):
        inside = pc.and_(
            pc.greater(block["event_time"], time_scalar(since_ms)),
            pc.less_equal(block["event_time"], time_scalar(until_ms)),
        )
        yield from zip(*from_arrow_columns(block.filter(inside), _COLUMNS), strict=True)
