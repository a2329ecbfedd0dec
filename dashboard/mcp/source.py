"""Dashboard: what tools read: the tables, names that agents repeat, and how far the present is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from dashboard.mcp.tool_answer import LONGEST_LINK, Document, ToolAnswer, document, shown
from dashboard.pages.page_addresses import address
from dashboard.reading.known_time import cluster_names
from dashboard.reading.listing import Listing
from dashboard.reading.listing_query import Piece, piece
from dashboard.reading.questions import Reading
from streaming.machine.clock import now_ms
from streaming.settings.model import Check, Settings
from streaming.tables.errors import AmbiguousError
from streaming.tables.schema import Row
from streaming.terminal.format import count, time_text
from streaming.terminal.output import TIMES
from streaming.terminal.time_input import parse_time
from streaming.views.freshness import ClusterFreshness
from streaming.views.known_clusters import first_by_cluster
from streaming.views.name_checks import require_present
from streaming.views.reader import distinct
from udfs.model.config import CoreConfig
from udfs.model.first_few import first_few

# Of the clusters of an answer, those that are not known come first.
_CLUSTERS_SHOWN, _CLUSTERS_NAMED = 10, 3
# Where a group is known: a deleted one only by its history.
_NAMING = (("groups",), ("rebalances", "findings"))
_UNKNOWN = ("unknown", "partly_known")


class ToolSettings(NamedTuple):
    """Settings that tools need beside the tables.

    Attributes:
        check: When objectives are missed. core: By which `what_if` assigns. link: The address of the pages, or empty.
    """

    check: Check
    core: CoreConfig
    link: str = ""

    @classmethod
    def of(cls, settings: Settings) -> ToolSettings:
        """Return those of all settings."""
        return cls(settings.check, settings.core_config(), settings.alerts.link)


class Source:
    """Reads the tables for tools.

    Args:
        reading: The tables. settings: See ``ToolSettings``.
    """

    def __init__(self, reading: Reading, settings: ToolSettings) -> None:
        self.reading, self.settings = reading, settings

    # ---- names and times

    def cluster(self, text: str) -> str | None:
        """Return the cluster of that name; None for an empty text.

        Raises:
            NotFoundError: There is none.
        """
        if not text:
            return None
        name = meant(text, lambda: cluster_names(self.reading))
        if name not in self.reading.freshness.clusters:
            require_present(self.reading.tables, name)
        return name

    def group(self, text: str, cluster: str) -> tuple[str, str]:
        """Return cluster and name of a group, which may be deleted.

        Raises:
            NotFoundError, AmbiguousError: There is none, or several clusters have one.
        """
        reader, where = self.reading.tables, {"cluster": self.cluster(cluster)}
        name = meant(text, lambda: distinct(reader, [each for every in _NAMING for each in every], "group_id", where))
        require_present(reader, where["cluster"], name)
        for tables in _NAMING:
            found = sorted(distinct(reader, tables, "cluster", where | {"group_id": name}))
            if len(found) > 1:
                raise AmbiguousError(f"group {name} is in several clusters: {', '.join(found)}; name one with cluster")
            if found:
                break
        return found[0], name

    def name(self, text: str, tables: Sequence[str], column: str, where: Mapping[str, Any]) -> str:
        """Return the name of a column that a text means, see ``meant``."""
        return meant(text, lambda: distinct(self.reading.tables, tables, column, where))

    # ---- answers

    def piece(self, listing: Listing, chosen: Mapping[str, str | int | None], limit: int, sort: str = "") -> Piece:
        """Return rows of a listing as the API does."""
        texts = {name: time_text(value) if isinstance(value, int) else value or "" for name, value in chosen.items()}
        most = min(limit, self.reading.max_rows)
        return piece(self.reading, listing, texts, sort=sort, limit=most, is_whole=True)

    def link(self, path: str, **parameters: object) -> str | None:
        """Return the address of a page, or its path if the pages' address is not known; None for a long one."""
        found = self.settings.link.rstrip("/") + address(path, parameters)
        return found if len(found) <= LONGEST_LINK else None

    def document(self, found: ToolAnswer, times: frozenset[str] = TIMES) -> Document:
        """Return an answer with what is known of the clusters that it is about."""
        warning, freshness = self._freshness(found.clusters, found.at_ms)
        return document(found, warning, freshness, times)

    def _freshness(self, clusters: Sequence[str] | None, at_ms: int | None) -> tuple[str, list[Row]]:
        """Return a sentence on what is not known, empty if all is, and rows of clusters."""
        freshness = self.reading.freshness
        names = cluster_names(self.reading) if clusters is None else clusters
        found = [freshness.of(name) for name in names] or [freshness.nothing()]
        if at_ms is not None:
            found = _at(self.reading, found, at_ms)
        found.sort(key=lambda status: status.state not in _UNKNOWN)
        blind = [status for status in found if status.state in _UNKNOWN]
        rows = [{name: status.row[name] for name in ("cluster", "state", "known_until", "text")} for status in found]
        left = len(rows) - _CLUSTERS_SHOWN
        more = [{"text": f"{count(left, 'more cluster')}"}] if left > 0 else []
        texts = [f"{shown(status.cluster) or 'every cluster'} is {status.text}" for status in blind]
        stale = " What follows is as last known." if any(status.state == "unknown" for status in blind) else ""
        warning = f"{first_few(texts, _CLUSTERS_NAMED)}.{stale}" if texts else ""
        return warning, rows[:_CLUSTERS_SHOWN] + more


def _at(reading: Reading, found: list[ClusterFreshness], at_ms: int) -> list[ClusterFreshness]:
    first, now = first_by_cluster(reading.tables), now_ms()
    return [status.unknown_at(at_ms, first.get(status.cluster), now) or status for status in found]


def meant(text: str, names: Callable[[], Iterable[str]]) -> str:
    """Return the name that a text stands for: answers escape names, and leave out the middle of long ones.

    Raises:
        AmbiguousError: Several names look like it.
    """
    if "\\" not in text and "…" not in text:
        return text
    there = set(names())
    fitting = [name for name in there if shown(name) == text]
    if text in there or not fitting:
        return text
    if len(fitting) > 1:
        raise AmbiguousError(f"{len(fitting)} names look like {text}")
    return fitting[0]


def time_of(name: str, text: str) -> int | None:
    """Return the time of an argument in epoch ms; None for an empty text.

    Raises:
        ValueError: The text is not a time.
    """
    try:
        return parse_time(text, now_ms()) if text else None
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
