"""Shell: the view of the running job on a terminal; elsewhere nothing."""

from __future__ import annotations

import datetime
import logging
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from streaming.machine import clock
from streaming.terminal.causes import CAUSE_TEXTS, describe_cause
from streaming.terminal.escape import printable
from streaming.terminal.table_layout import middle_cut

REFRESHES_PER_SECOND = 4
KEPT_REBALANCES = 200
KEPT_NOTES = 20
# From the first width on there is room for more columns; below the second only the most important ones are shown.
MIDDLE = 100
NARROW = 60
# A screen with fewer lines shows no clusters; one with even fewer shows only figures and rebalances.
LOW = 12
FLAT = 6

# The first rebalance is usually shown within these times, on quiet cores and on busy ones.
FIRST_REBALANCE_S = (25, 90)
# What each state at the start waits for.
STARTS = {
    "starting": "the settings are read",
    "checking clusters": "connecting to the clusters, reading their versions",
    "starting Spark": "Spark starts its JVM",
    "running": "Spark computes the first batch and starts its Python workers",
    "catching up": "Spark computes the first batch and starts its Python workers",
}


@dataclass(frozen=True)
class ObservedRebalance:
    """One rebalance as shown in the view."""

    event_time: int
    cluster: str
    group_id: str
    trigger: str
    triggers: tuple[Mapping[str, Any], ...]
    members_after: int
    queues_moved: int
    failed: bool = False

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> ObservedRebalance:
        """Make it from a row of ``rebalances`` with times in epoch ms."""
        return cls(
            event_time=int(row["event_time"]),
            cluster=row["cluster"],
            group_id=row["group_id"],
            trigger=row["trigger"],
            triggers=tuple(row["triggers"]),
            members_after=row["members_after"],
            queues_moved=row["queues_moved"],
            failed=row["status"] == "failed",
        )


@dataclass(frozen=True)
class ClusterStatus:
    """The current state of one cluster. ``changed_ms`` is the event time of its last change; None if unknown."""

    name: str
    system: str
    groups: int
    members: int
    changed_ms: int | None = None
    note: str | None = None


@dataclass
class LiveStatus:
    """The job's knowledge of itself, written by the job and read by the view. Attributes are replaced as a whole.

    Attributes:
        state: A short text: starting, running, catching up, reconnecting, stopping.
        events_per_second: Over the last batches.
        delay_ms: From an event to its row in ``rebalances``: the age of the last decision.
        batch, batch_ms: The last batch's number and how long it took.
        batches, batches_ms: Their number since the start, and their total duration.
        parts_ms: The duration of each part, by the names of Spark's ``durationMs``.
        rebalances: Newest first, by the batch that decided them.
        findings: Open now; None if not counted.
        pages: The address for a browser; empty if there is none.
        following: How much of a large batch the tables have now; empty if nothing large is left.
        notes: Warnings and errors, newest last.
    """

    state: str = "starting"
    started_at_ms: int = field(default_factory=clock.now_ms)
    events: int = 0
    events_per_second: float = 0.0
    delay_ms: int | None = None
    batch: int | None = None
    batch_ms: int | None = None
    batches: int = 0
    batches_ms: int = 0
    parts_ms: Mapping[str, int] = field(default_factory=dict)
    clusters: tuple[ClusterStatus, ...] = ()
    rebalance_count: int = 0
    rebalances: deque[ObservedRebalance] = field(default_factory=lambda: deque(maxlen=KEPT_REBALANCES))
    findings: int | None = None
    rejected: int = 0
    tables: str = ""
    pages: str = ""
    following: str = ""
    notes: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT_NOTES))

    def add_rebalances(self, rows: Iterable[Mapping[str, Any]], count: int | None = None) -> None:
        """Add the rebalances of one batch, in any order; ``count`` is their number if these are only the newest."""
        ordered = sorted(rows, key=lambda row: (row["event_time"], row["cluster"], row["group_id"]))
        self.rebalance_count += len(ordered) if count is None else count
        self.rebalances.extendleft(map(ObservedRebalance.of, ordered[-KEPT_REBALANCES:]))


class NotesHandler(logging.Handler):
    """Brings warnings and errors of the log into the view, which owns the terminal while it is shown."""

    def __init__(self, status: LiveStatus) -> None:
        super().__init__(logging.WARNING)
        self._status = status
        self.records: deque[logging.LogRecord] = deque(maxlen=KEPT_NOTES)

    def emit(self, record: logging.LogRecord) -> None:
        message = record.msg.get("event", "") if isinstance(record.msg, dict) else record.getMessage()
        self._status.notes.append(f"{record.levelname.lower()}: {message}")
        self.records.append(record)


class LiveView:
    """Shows a status until it is closed; does nothing if there is no terminal.

    Args:
        console: The output; None for standard error, so that standard output stays data.
    """

    def __init__(self, status: LiveStatus, *, console: Console | None = None) -> None:
        self._status = status
        self._console = console or Console(stderr=True)
        self._live: Live | None = None
        self._handlers: list[logging.Handler] = []
        self._notes = NotesHandler(status)

    @property
    def is_shown(self) -> bool:
        """Return whether the output is a terminal."""
        return self._console.is_terminal and not self._console.is_dumb_terminal

    def __enter__(self) -> LiveView:
        if self.is_shown:
            root = logging.getLogger()
            self._handlers = root.handlers[:]
            root.handlers[:] = [self._notes]
            self._live = Live(
                get_renderable=self._render,
                console=self._console,
                screen=True,
                refresh_per_second=REFRESHES_PER_SECOND,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start(refresh=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
            logging.getLogger().handlers[:] = self._handlers
            # The view disappears with its notes, so the last ones are printed again.
            for record in self._notes.records:
                for handler in self._handlers:
                    handler.handle(record)

    def _render(self) -> RenderableType:
        size = self._console.size
        return render(self._status, clock.now_ms(), size.width, size.height, "Ctrl-C stops")


def render(status: LiveStatus, now_ms: int, width: int, height: int, footer: str = "") -> RenderableType:
    """Render a status for a screen of this size; nothing is wider or higher."""
    clusters = status.clusters[: max(1, min(len(status.clusters), height // 3))] if height >= LOW else ()
    notes = list(status.notes)[-max(1, height // 8) :] if height >= FLAT else []
    blank = [Text("")] if height >= FLAT else []
    places = (f"pages: {status.pages}" if status.pages else "", f"tables: {status.tables}" if status.tables else "")
    foot = " · ".join(part for part in (*places, footer) if part)
    below: list[RenderableType] = [_line(note, "yellow") for note in notes]
    if height >= FLAT:
        below.append(_line(foot, "dim"))
    # The head takes two lines, and the headings of clusters and rebalances one each; the last line stays free.
    room = height - 2 - len(blank) - (len(clusters) + 2 if clusters else 0) - 1 - len(below) - 1
    parts: list[RenderableType] = [_head(status, now_ms, width), *blank]
    if clusters:
        parts += [_clusters(clusters, now_ms, width), *blank]
    if room > 0:
        parts.append(_rebalances(status, room, width) if status.rebalances else _waiting(status, room))
    return Group(*parts, *below)


def _waiting(status: LiveStatus, room: int) -> RenderableType:
    """Return what the view waits for while it has nothing to show, and how long that usually takes."""
    quiet_s, busy_s = FIRST_REBALANCE_S
    if status.batch is not None:
        return _line("no rebalance yet: the first one needs an event that is older than the allowed lateness", "dim")
    what = STARTS.get(status.state)
    if what is None:
        return _line("no rebalance yet", "dim")
    lines = [
        _line(f"waiting: {what}", "bold"),
        _line(
            f"The first rebalances show about {quiet_s} s after the start as a rule, {busy_s} s on busy cores.", "dim"
        ),
    ]
    if status.pages:
        lines.append(_line(f"The same in a browser: {status.pages}", "dim"))
    return Group(*lines[:room])


def _line(text: str, style: str = "") -> Text:
    return Text(printable(text), style=style, no_wrap=True, overflow="ellipsis")


def _head(status: LiveStatus, now_ms: int, width: int) -> RenderableType:
    style = "bold green" if status.state == "running" else "bold yellow"
    title = Text.assemble(
        ("rebalance monitor", "bold"), "  ", (status.state, style), "  ", _span(now_ms - status.started_at_ms)
    )
    if status.batch is not None:
        took = "" if status.batch_ms is None else f" in {status.batch_ms / 1_000:.1f} s"
        title.append(f"  batch {status.batch}{took}", "dim")
    if status.following:
        title.append(f"  the tables have {status.following}", "yellow")
    groups, members = (sum(getattr(cluster, name) for cluster in status.clusters) for name in ("groups", "members"))
    figures = [
        (_brief(groups), _noun(groups, "group"), "bold"),
        (_brief(members), _noun(members, "member"), "bold"),
        (_brief(round(status.events_per_second)), "events/s", "bold"),
        ("–" if status.delay_ms is None else f"{status.delay_ms / 1_000:.1f} s", "delay", "bold"),
        (_count(status.rebalance_count), _noun(status.rebalance_count, "rebalance"), "bold"),
    ]
    if width >= MIDDLE:
        figures.insert(0, (_count(len(status.clusters)), _noun(len(status.clusters), "cluster"), "bold"))
    troubles = []
    if status.findings is not None:
        name = _noun(status.findings, "finding")
        troubles.append((_brief(status.findings), name, "bold red" if status.findings else "bold"))
    if status.rejected or width >= MIDDLE:
        troubles.append((_brief(status.rejected), "rejected", "bold yellow" if status.rejected else "bold"))
    # On a narrow screen the first line has more room left than the second.
    lines = (troubles, figures) if width < MIDDLE else ([], figures + troubles)
    for text, some in zip((title, below := Text()), lines, strict=True):
        for figure, name, colour in some:
            text.append("  " if text else "").append(figure, colour).append(f" {name}", "dim")
        text.no_wrap, text.overflow = True, "ellipsis"
    return Group(title, below)


def _table(width: int) -> Table:
    return Table(box=None, padding=(0, 2, 0, 0), width=width, header_style="dim bold", show_edge=False)


def _clusters(clusters: Iterable[ClusterStatus], now_ms: int, width: int) -> Table:
    table = _table(width)
    is_narrow = width < NARROW
    table.add_column("cluster", no_wrap=True, overflow="ellipsis", width=max(4, width - 12) if is_narrow else 24)
    if not is_narrow:
        table.add_column("system", no_wrap=True, width=8)
        table.add_column("groups", no_wrap=True, justify="right", width=9)
    table.add_column("members", no_wrap=True, justify="right", width=8 if is_narrow else 11)
    if not is_narrow:
        table.add_column("last change", no_wrap=True, overflow="ellipsis", ratio=1)
    for cluster in clusters:
        changed = "–" if cluster.changed_ms is None else f"{_span(max(0, now_ms - cluster.changed_ms))} ago"
        style = "yellow" if cluster.note else ""
        if is_narrow:
            table.add_row(_line(cluster.name, style), _brief(cluster.members))
        else:
            figures = (_count(cluster.groups), _count(cluster.members))
            table.add_row(_line(cluster.name), _line(cluster.system), *figures, _line(cluster.note or changed, style))
    return table


def _rebalances(status: LiveStatus, room: int, width: int) -> RenderableType:
    table = _table(width)
    is_narrow = width < NARROW
    table.add_column("time", no_wrap=True, width=8)
    # Groups of several clusters may have the same name.
    if not is_narrow:
        table.add_column("cluster", no_wrap=True, overflow="ellipsis", width=16 if width >= MIDDLE else 11)
    group_width = 24 if width >= MIDDLE else max(4, min(19, width // 3))
    table.add_column("group", no_wrap=True, overflow="ellipsis", width=group_width)
    if not is_narrow:
        table.add_column("members", no_wrap=True, justify="right", width=7)
    if width >= MIDDLE:
        table.add_column("moved", no_wrap=True, justify="right", width=5)
    table.add_column("cause", no_wrap=True, overflow="ellipsis", ratio=1)
    id_width = max(4, width - group_width - 24) if is_narrow else max(16, width - 85)
    for rebalance in list(status.rebalances)[:room]:
        _, colour = CAUSE_TEXTS.get(rebalance.trigger, ("", ""))
        cause = _line(describe_cause(rebalance.triggers, rebalance.group_id, id_width), colour)
        if rebalance.failed:
            cause = Text.assemble(("failed: ", "bold red"), cause)
        time = datetime.datetime.fromtimestamp(rebalance.event_time / 1_000, datetime.UTC)
        cells: list[RenderableType] = [f"{time:%H:%M:%S}"]
        if not is_narrow:
            cells.append(_line(rebalance.cluster))
        cells.append(_line(middle_cut(printable(rebalance.group_id), group_width)))
        if not is_narrow:
            cells.append(_count(rebalance.members_after))
        if width >= MIDDLE:
            cells.append(_count(rebalance.queues_moved))
        table.add_row(*cells, cause)
    return table


def _count(number: int) -> str:
    """Write a number in a readable form.

    Example:
        >>> _count(1234567)
        '1,234,567'
    """
    return f"{number:,}"


def _noun(number: int, noun: str) -> str:
    return noun if number == 1 else f"{noun}s"


def _brief(number: int) -> str:
    """Write an approximate number in at most six characters.

    Example:
        >>> _brief(99_999), _brief(370_368), _brief(12_345_678)
        ('99,999', '370k', '12M')
    """
    if number < 100_000:
        return _count(number)
    return f"{number // 1_000}k" if number < 10_000_000 else f"{number // 1_000_000}M"


def _span(span_ms: int) -> str:
    """Write a span for people.

    Example:
        >>> _span(900), _span(61_000), _span(3_723_000)
        ('0 s', '1 min 1 s', '1 h 2 min')
    """
    seconds = max(0, span_ms) // 1_000
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3_600:
        return f"{seconds // 60} min {seconds % 60} s"
    return f"{seconds // 3_600} h {seconds % 3_600 // 60} min"
