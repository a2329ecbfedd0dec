"""Shell: the costs of rebalances: queues without an owner, messages read twice, messages that waited."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from streaming.tables.arrow_rows import from_arrow_columns
from streaming.tables.schema import Row
from streaming.tables.shared_columns import COST_NAMES
from streaming.terminal.format import between, count
from streaming.views.reader import Reader, Within

# A finding is attributed to the rebalances in this time before it.
BEFORE_MS = 3_600_000
_OUTAGES = ("outage_min_ms", "outage_max_ms", "outage_unknown_queues")


class Cost(msgspec.Struct, frozen=True):
    """The total cost of a group's rebalances; None if not observed for any of them.

    Attributes:
        outage_min_ms, outage_max_ms: Minimum and maximum time in which nobody read queues, summed over these.
        outage_unknown_queues: Queues without an upper bound, which count with their lower bound in both sums.
    """

    rebalances: int = 0
    outage_min_ms: int | None = None
    outage_max_ms: int | None = None
    outage_unknown_queues: int | None = None
    repeated_messages: int | None = None
    repeated_estimated_messages: int | None = None
    waiting_messages: int | None = None
    waiting_estimated_messages: int | None = None

    def with_rebalance(self, row: Row) -> Cost:
        """Return the cost including that of one more rebalance."""
        sums = {name: _sum(getattr(self, name), row[name]) for name in (*_OUTAGES, *COST_NAMES)}
        return Cost(self.rebalances + 1, **sums)

    @property
    def text(self) -> str:
        """Return the cost as text, without anything that was not observed.

        Example:
            >>> Cost(2, 4_000, 45_000, 0, 1_200).text
            '2 rebalances: nobody read queues for up to 45.0 s added up; 1200 messages were read twice'
            >>> Cost(1, 250, 400, 3).text
            '1 rebalance: nobody read queues for 250 ms to 400 ms added up, and 3 queues for an unknown time'
        """
        parts = [_outage(self.outage_min_ms, self.outage_max_ms, self.outage_unknown_queues or 0)]
        parts += [repeated_text(self.repeated_messages, self.repeated_estimated_messages, "messages ")]
        parts += [waiting_text(self.waiting_messages, self.waiting_estimated_messages)]
        text = "; ".join(part for part in parts if part)
        return count(self.rebalances, "rebalance") + (f": {text}" if text else "")


def repeated_text(exact: int | None, estimated: int | None, things: str = "") -> str:
    """Return how many messages were read twice; empty if not observed.

    Example:
        >>> repeated_text(3, None), repeated_text(None, 4), repeated_text(None, None)
        ('3 were read twice', 'about 4 were read twice (estimated)', '')
    """
    if exact is None:
        return "" if estimated is None else f"about {estimated} {things}were read twice (estimated)"
    return f"{exact} {things}were read twice" + (
        "" if estimated is None else f", and about {estimated} more (estimated)"
    )


def rebalances_before(reader: Reader, findings: Iterable[Row], columns: Sequence[str]) -> Iterator[tuple[Row, Row]]:
    """Yield findings with each rebalance of their group up to ``BEFORE_MS`` before they opened, or with which they did.

    Args:
        columns: Those of ``rebalances``, besides cluster, group_id and event_time.
    """
    by_group: dict[tuple[str, str], list[Row]] = {}
    for row in findings:
        if row["group_id"] is not None and row["opened_at"] is not None:
            by_group.setdefault((row["cluster"], row["group_id"]), []).append(row)
    if not by_group:
        return
    opened = [row["opened_at"] for rows in by_group.values() for row in rows]
    where = {
        "cluster": {cluster for cluster, _ in by_group},
        "group_id": {group for _, group in by_group},
        "event_time": Within(min(opened) - BEFORE_MS, max(opened) + 1),
    }
    names = ("cluster", "group_id", "event_time", *columns)
    table = reader.read("rebalances", columns=names, where=where)
    for values in zip(*from_arrow_columns(table, names), strict=True):
        rebalance: Row = dict(zip(names, values, strict=True))
        for finding in by_group.get((rebalance["cluster"], rebalance["group_id"]), ()):
            if 0 <= finding["opened_at"] - rebalance["event_time"] <= BEFORE_MS:
                yield finding, rebalance


def costs_before(reader: Reader, findings: Iterable[Row]) -> Mapping[str, Cost]:
    """Return the costs of the rebalances of each finding's group in the hour up to its opening, by finding id.

    A finding of a cluster has no cost, nor has a finding whose group did not rebalance then.
    """
    found: dict[str, Cost] = {}
    for finding, rebalance in rebalances_before(reader, findings, (*_OUTAGES, *COST_NAMES)):
        # The hour does not include its beginning.
        if finding["opened_at"] - BEFORE_MS < rebalance["event_time"]:
            name = finding["finding_id"]
            found[name] = found.get(name, Cost()).with_rebalance(rebalance)
    return found


def waiting_text(exact: int | None, estimated: int | None) -> str:
    """Return how many messages waited for new owners; empty if not observed.

    Example:
        >>> waiting_text(3, None), waiting_text(None, 4)
        ('3 waited for new owners', 'about 4 waited for new owners (estimated)')
    """
    if exact is None:
        return "" if estimated is None else f"about {estimated} waited for new owners (estimated)"
    return f"{exact} waited for new owners" + ("" if estimated is None else f", and about {estimated} more (estimated)")


def outage_text(row: Row) -> str:
    """Return how long nobody read the queues of a rebalance, added up."""
    unknown = row["outage_unknown_queues"] or 0
    if row["outage_min_ms"] is None and row["outage_max_ms"] is None:
        return "unknown" if unknown else "-"
    text = between(row["outage_min_ms"], row["outage_max_ms"])
    return f"{text} (+{unknown} unknown)" if unknown and row["outage_max_ms"] is not None else text


def _outage(least: int | None, most: int | None, unknown: int) -> str:
    others = f"{count(unknown, 'queue')} for an unknown time" if unknown else ""
    if not least and not most:
        return f"nobody read {others}" if unknown else "" if least is None else "no queue was left unread"
    text = f"nobody read queues for {between(least, most)} added up"
    return f"{text}, and {others}" if unknown else text


def _sum(total: int | None, added: int | None) -> int | None:
    return total if added is None else (total or 0) + added
