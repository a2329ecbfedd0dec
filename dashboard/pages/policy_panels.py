"""Dashboard: small multiples of a replay: one panel for each policy beside what was recorded, on one scale."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from streaming.tables.schema import Row
from streaming.terminal.format import span_of_time

# The length of the longest bar, in units of the picture.
LONGEST: Final = 100


class Measure(NamedTuple):
    """One figure of a panel.

    Attributes:
        value, recorded: As text; unknown is a word. bar, recorded_bar: Lengths, of which the longest is ``LONGEST``;
            None if unknown.
    """

    title: str
    value: str
    recorded: str
    bar: int | None
    recorded_bar: int | None

    @property
    def text(self) -> str:
        """Return it as a sentence, for those who do not see bars."""
        return f"{self.title}: {self.value}, as recorded {self.recorded}"


class Panel(NamedTuple):
    """What one policy comes to.

    Attributes:
        groups: Of how many groups; None for one group. unknown: What is not known of it, and why.
    """

    policy: str
    measures: Sequence[Measure]
    groups: int | None = None
    unknown: str = ""


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def _estimate(value: float) -> str:
    return f"~{span_of_time(round(value))}"


_MEASURES: Final[Sequence[tuple[str, str, Callable[[float], str]]]] = (
    ("Rebalances", "rebalances", _number),
    ("Queues moved", "queues_moved", _number),
    ("Queue-pause", "pause", _estimate),
    ("Spread", "spread", _number),
)


def panels_of_group(figures: Sequence[Row]) -> list[Panel]:
    """Return a panel for each policy of a group, those that stop fewest queues first; ``figures``: see replay_groups.

    Queue-pause is estimated in each, also as recorded: queues that stood still times the median of one, and what they
    stand still while rebalances wait for silent members.
    """
    recorded = next((row for row in figures if row["policy"] is None and row["rebalances"] is not None), None)
    if recorded is None:
        return []
    known = [row for row in figures if row["policy"] is not None and row["rebalances"] is not None]
    known.sort(key=lambda row: (row["queues_stopped"] is None, row["queues_stopped"] or 0, row["policy"]))
    refused = [row for row in figures if row["policy"] is not None and row["rebalances"] is None]
    each = recorded["move_pause_ms"]
    pairs = [(_estimated(row, each), _estimated(recorded, each)) for row in known]
    texts = [row["unknown"] or "" if row["queues_stopped"] is None else "" for row in known]
    return [
        *_panels([row["policy"] for row in known], pairs, [None] * len(known), texts),
        *(Panel(row["policy"], (), unknown=row["unknown"] or "") for row in refused),
    ]


def panels_of_run(sums: Sequence[Row]) -> list[Panel]:
    """Return a panel for each policy of a replay of many groups, in their order.

    Args:
        sums: Those of ``replays``, with ``spread`` and ``recorded_spread``: means over the same groups.
    """
    of_policies = [row for row in sums if row["policy"] is not None and row["groups"] > row["groups_unknown"]]
    pairs = [
        (
            {name: row[name] for name in ("rebalances", "queues_moved", "spread")} | {"pause": row["pause"]},
            {name: row[f"recorded_{name}"] for name in ("rebalances", "queues_moved", "spread", "pause")},
        )
        for row in of_policies
    ]
    counts = [row["groups"] - row["groups_unknown"] for row in of_policies]
    texts = [_partly(row) for row in of_policies]
    return _panels([row["policy"] for row in of_policies], pairs, counts, texts)


def _partly(row: Row) -> str:
    unknown = row["queue_pause_unknown"]
    return f"queue-pause is unknown, or only a part, in {unknown:,} of these groups" if unknown else ""


def _estimated(row: Row, each: float | None) -> Row:
    stopped = row["queues_stopped"]
    pause = None if each is None or stopped is None else stopped * each + (row.get("waiting_pause_ms") or 0)
    return {name: row[name] for name in ("rebalances", "queues_moved", "spread")} | {"pause": pause}


def _panels(
    policies: Sequence[str],
    pairs: Sequence[tuple[Row, Row]],
    groups: Sequence[int | None],
    unknown: Sequence[str],
) -> list[Panel]:
    longest = {
        name: max((row[name] for pair in pairs for row in pair if row[name] is not None), default=0)
        for _, name, _ in _MEASURES
    }

    def measure(pair: tuple[Row, Row], title: str, name: str, write: Callable[[float], str]) -> Measure:
        (of_policy, recorded), most = (row[name] for row in pair), longest[name]
        texts = ["unknown" if value is None else write(value) for value in (of_policy, recorded)]
        bars = [None if value is None else round(LONGEST * value / (most or 1)) for value in (of_policy, recorded)]
        return Measure(title, texts[0], texts[1], bars[0], bars[1])

    return [
        Panel(policy, [measure(pair, *each) for each in _MEASURES], number, reason)
        for policy, pair, number, reason in zip(policies, pairs, groups, unknown, strict=True)
    ]
