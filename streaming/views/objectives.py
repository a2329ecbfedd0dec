"""Shell: whether what the tables show meets the objectives: findings, rates, pauses, delays. Reads without Spark."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from streaming.settings.locations import Location
from streaming.settings.model import Check, Widespread
from streaming.tables.arrow_rows import from_arrow_columns
from streaming.tables.location import is_table, table_uri
from streaming.tables.schema import TABLES, Row
from streaming.views.finding_lists import SEVERITIES
from streaming.views.reader import Reader, holds_at, time_scalar
from streaming.views.widespread import WidespreadKind, widespread_kinds

State: TypeAlias = Literal["ok", "warning", "critical"]
# In this order an objective is named; each is ``NAME_warning`` and ``NAME_critical`` in the settings.
OBJECTIVES = ("rebalances_per_hour", "queue_pause_s", "source_delay_s", "table_age_s")
_HOUR_MS = 3_600_000
_COLUMNS = ("cluster", "group_id", "event_time", "detected_at", "queue_pause_ms", "queue_pause_estimated_ms")


@dataclass(frozen=True)
class Figure:
    """The worst value of one objective.

    Attributes:
        value: None: there is nothing to measure.
        warning, critical: From which value on; 0 = never.
        cluster, group_id: Where the value is.
    """

    name: str
    value: float | None
    warning: float
    critical: float
    cluster: str | None = None
    group_id: str | None = None

    @property
    def state(self) -> State:
        """Return how bad it is."""
        if self.value is None:
            return "ok"
        if self.critical and self.value >= self.critical:
            return "critical"
        return "warning" if self.warning and self.value >= self.warning else "ok"


@dataclass(frozen=True)
class Evaluation:
    """What was found.

    Attributes:
        findings: Open findings that count, the most severe first.
        figures: Every objective.
        widespread: What is open in many groups at once; findings of it do not count.
    """

    findings: Sequence[Row]
    figures: Sequence[Figure]
    widespread: Sequence[WidespreadKind] = ()

    @property
    def state(self) -> State:
        """Return the worst of them."""
        states = {_state_of(row) for row in self.findings} | {figure.state for figure in self.figures}
        return next((state for state in _WORST_FIRST if state in states), "ok")

    @property
    def kinds(self) -> Mapping[tuple[str, str], int]:
        """Return how many findings of each severity and kind are open, the most severe first."""
        return Counter((row["severity"], row["kind"]) for row in self.findings)


_WORST_FIRST: Sequence[State] = ("critical", "warning")


def evaluate(
    reader: Reader,
    objectives: Check,
    widespread: Widespread,
    now_ms: int,
    *,
    cluster: str | None = None,
    group: str | None = None,
    ignored: Iterable[str] = (),
    committed_ms: int | None = None,
) -> Evaluation:
    """Return what was open, and the state of the objectives, at a time.

    Args:
        widespread: What is open in many groups at once, and does not count.
        now_ms: Only what was so at this time counts; rates are those of ``objectives.window_ms`` before it.
        cluster, group: Only of these.
        ignored: Kinds of findings that do not count, beside those of severity info.
        committed_ms: When the tables last changed.
    """
    where = {"cluster": cluster, "group_id": group}
    left_out = {*ignored, *objectives.ignored_findings}
    found = reader.rows("findings", where=where, keep=holds_at("opened_at", "closed_at", now_ms))
    among = [one for one in widespread_kinds(reader, widespread, now_ms, cluster=cluster) if one.kind not in left_out]
    counted = [
        row
        for row in found
        if row["severity"] != "info" and row["kind"] not in left_out and not any(one.has(row) for one in among)
    ]
    counted.sort(key=lambda row: (SEVERITIES.index(row["severity"]), row["kind"], row["opened_at"], row["finding_id"]))
    return Evaluation(counted, _figures(reader, objectives, now_ms, where, committed_ms), among)


def last_commit_ms(root: Location) -> int | None:
    """Return when any table was last changed by a commit; None: there is no table."""
    tables = (DeltaTable(table_uri(root, name)) for name in TABLES if is_table(root, name))
    return max((int(table.history(1)[0]["timestamp"]) for table in tables), default=None)


def _state_of(finding: Row) -> State:
    return "critical" if finding["severity"] == "critical" else "warning"


def _figures(
    reader: Reader, objectives: Check, now_ms: int, where: Mapping[str, str | None], committed_ms: int | None
) -> list[Figure]:
    since_ms = now_ms - objectives.window_ms
    rebalances: Counter[tuple[str, str]] = Counter()
    pauses: Counter[tuple[str, str]] = Counter()
    delays: dict[str, int] = defaultdict(int)
    for block in reader.blocks("rebalances", columns=_COLUMNS, where=where):
        for name, group, at, detected, observed, estimated in _between(block, since_ms, now_ms):
            rebalances[name, group] += 1
            pauses[name, group] += observed if observed is not None else estimated or 0
            delays[name] = max(delays[name], (detected or at) - at)
    hours = objectives.window_ms / _HOUR_MS
    worst = {
        "rebalances_per_hour": _largest({key: number / hours for key, number in rebalances.items()}),
        "queue_pause_s": _largest({key: number / 1_000 for key, number in pauses.items()}),
        "source_delay_s": _largest({(name, None): delay / 1_000 for name, delay in delays.items()}),
        "table_age_s": (None if committed_ms is None else max(0.0, (now_ms - committed_ms) / 1_000), None, None),
    }
    return [
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


def _largest(values: Mapping[tuple[str, str | None], float]) -> tuple[float | None, str | None, str | None]:
    if not values:
        return 0.0, None, None
    (cluster, group), value = min(values.items(), key=lambda one: (-one[1], one[0][0], one[0][1] or ""))
    return value, cluster, group


def _between(block: pa.Table, since_ms: int, until_ms: int) -> Iterable[tuple[Any, ...]]:
    inside = pc.and_(
        pc.greater(block["event_time"], time_scalar(since_ms)),
        pc.less_equal(block["event_time"], time_scalar(until_ms)),
    )
    return zip(*from_arrow_columns(block.filter(inside), _COLUMNS), strict=True)
