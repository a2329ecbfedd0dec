"""Dashboard: the tool that foresees what a change would do to a group."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from dashboard.mcp.arguments import At, Cluster, Group, Limit
from dashboard.mcp.source import Source, time_of
from dashboard.mcp.tool_answer import Document, Listed, ToolAnswer
from streaming.tables.schema import Row
from streaming.terminal.format import count, time_text
from streaming.views.foresight import answer, compared, member_rows
from streaming.views.foresight_texts import headline, lines, move_rows
from streaming.views.known_groups import FoundGroup, found_group, load_custom_strategies
from streaming.views.wished_changes import EVERY, Wish, mistakes_of

# Names, and new members, in one question: predictions grow with both.
_MOST_NAMED, _MOST_ADDED = 100, 1_000
_Names: TypeAlias = tuple[str, ...]
_Queues: TypeAlias = dict[str, Annotated[int, Field(ge=0, lt=10_000_000)]] | None


class WhatIfTool:
    """A tool that answers as the command `what-if` does."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def what_if(
        self,
        group: Group,
        cluster: Cluster = "",
        at: At = "",
        add: Annotated[int, Field(ge=0, le=_MOST_ADDED, description="New members")] = 0,
        like: Annotated[str, Field(description="New members subscribe like this one; empty = like most")] = "",
        remove: Annotated[_Names, Field(max_length=_MOST_NAMED, description="Who leaves, or how many")] = (),
        lose_host: Annotated[_Names, Field(max_length=_MOST_NAMED, description="Hosts that fall silent")] = (),
        lose_rack: Annotated[_Names, Field(max_length=_MOST_NAMED, description="Racks that fall silent")] = (),
        queues: Annotated[_Queues, Field(max_length=_MOST_NAMED, description="New number of queues by topic")] = None,
        strategy: Annotated[str, Field(description="Another strategy; all = compare every one")] = "",
        rolling_restart: Annotated[bool, Field(description="Every member restarts")] = False,
        at_a_time: Annotated[int, Field(ge=1, le=_MOST_ADDED, description="How many restart at a time")] = 1,
        static: Annotated[bool, Field(description="They restart as static members, within their timeout")] = False,
        limit: Limit = 20,
    ) -> Document:
        """Foresee what a change would do to a group, without making it: what moves, what stops, for how long."""
        wish = Wish(
            add=add,
            like=like or None,
            remove=remove,
            hosts=lose_host,
            racks=lose_rack,
            queues=queues or {},
            strategy=None if strategy in ("", EVERY) else strategy,
            at_once=at_a_time if rolling_restart else 0,
            is_static=static,
        )
        if mistakes := mistakes_of(wish, is_compared=strategy == EVERY, at_a_time=at_a_time):
            raise ValueError("; ".join(mistakes))
        named, of_group = self._source.group(group, cluster)
        at_ms, core = time_of("at", at), self._source.settings.core
        found = found_group(self._source.reading.tables, of_group, named, at_ms, core.vote_tie_order)
        load_custom_strategies(found, strategy or None)
        made = self._compared(found, wish) if strategy == EVERY else self._foreseen(found, wish, at_ms, limit)
        made.facts |= {"cluster": named, "group_id": of_group, "at": at_ms, "strategy": found.strategy}
        made.at_ms = at_ms
        made.not_known += found.doubts
        made.evidence.append({"what": "group", "link": self._source.link("/group", cluster=named, group=of_group)})
        if found.rebalances:
            first, last = (found.rebalances[place]["event_time"] for place in (0, -1))
            what = f"{count(len(found.rebalances), 'rebalance')} of the group, of which costs are measured"
            made.evidence.append({"what": what, "since": first, "at": last})
        return self._source.document(made)

    def _compared(self, found: FoundGroup, wish: Wish) -> ToolAnswer:
        rows = [each.row for each in compared(found, wish, self._source.settings.core)]
        return ToolAnswer([found.known.cluster], {}, {"strategies": Listed(rows, len(rows))})

    def _foreseen(self, found: FoundGroup, wish: Wish, at_ms: int | None, limit: int) -> ToolAnswer:
        is_blind = at_ms is None and any(
            lost.cluster == found.known.cluster for lost in self._source.reading.freshness.blind()
        )
        when = "as last known" if is_blind else "now" if at_ms is None else f"at {time_text(at_ms)}"
        given = answer(self._source.reading.tables, found, wish, self._source.settings.core, at_ms)
        moves, held = move_rows(given), [_member(row) for row in member_rows(given)]
        # Assumptions and doubts have a list of their own.
        report = [line for line in lines(given) if not line.startswith(("Assumed: ", "In doubt: "))]
        return ToolAnswer(
            [found.known.cluster],
            {
                "change": headline(given, when),
                "queues_moved": given.prediction.moves.moved,
                "rebalances": len(given.prediction.rebalances),
            },
            {
                "report": Listed(report, len(report)),
                "moves": Listed(moves[:limit], len(moves), "raise limit"),
                "members": Listed(held[:limit], len(held), "raise limit"),
            },
            not_known=[f"assumed: {sentence}" for sentence in given.assumes],
        )


def _member(row: Row) -> Row:
    """Return a member with the number of its queues before and after; null where it is not one."""
    counted = {name: None if row[name] is None else len(row[name]) for name in ("before", "after")}
    return {name: row[name] for name in ("member_id", "client_id", "host", "change")} | counted
