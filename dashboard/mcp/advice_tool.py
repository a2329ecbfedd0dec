"""Dashboard: the tool that advises changes of configuration by the past of a group, or of all."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dashboard.mcp.arguments import AnyGroup, Cluster, Limit
from dashboard.mcp.source import Source
from dashboard.mcp.tool_answer import Document, Listed, ToolAnswer, picked
from dashboard.reading.listed_advice import advice_runs
from dashboard.reading.listings import ADVICE
from dashboard.reading.requested_advice import DAYS, MOST_DAYS, requested_advice
from streaming.tables.schema import Row

_ROW = (
    *("cluster", "group_id", "result", "policy", "saved_pause_ms", "saved_repeated_messages", "saved_percent", "sure"),
    *("costs", "settings", "rebalances", "covers_from", "covers_to", "unknown"),
)
_ENTRY = (
    *("policy", "saved_pause_ms", "saved_repeated", "fewer_stops", "fewer_moves", "fewer_rebalances", "costs"),
    *("settings", "assumes", "sure", "sure_because"),
)


class AdviceTool:
    """A tool that answers as the page of advice and the command `advise` do."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def advise(
        self,
        group: AnyGroup = "",
        cluster: Cluster = "",
        days: Annotated[int, Field(ge=1, le=MOST_DAYS, description="Of a group: the last days")] = DAYS,
        limit: Limit = 10,
    ) -> Document:
        """Advise changes of configuration by the past: what would have saved most, costs, keys to set, how sure."""
        return self._of_group(group, cluster, days, limit) if group else self._of_all(cluster, limit)

    def _of_all(self, cluster: str, limit: int) -> Document:
        named = self._source.cluster(cluster)
        found = self._source.piece(ADVICE, {"cluster": named}, limit)
        runs = advice_runs(self._source.reading)
        of_none = "no run over all groups is in these tables yet: the command `advise --all` writes one; name a group"
        return self._source.document(
            ToolAnswer(
                None if named is None else [named],
                {"groups": found.total, "with_advice": self._advised(named)},
                {"best_of_each_group": Listed(picked(found.rows, _ROW), found.total, "raise limit, or name a group")},
                not_known=[] if runs else [of_none],
                evidence=[
                    {"what": "replay", "id": run["replay_id"], "at": run["started_at"]}
                    | {"link": self._source.link("/replays", id=run["replay_id"])}
                    for run in runs
                ],
            )
        )

    def _advised(self, cluster: str | None) -> int:
        return self._source.piece(ADVICE, {"cluster": cluster, "result": "advice"}, 1).total

    def _of_group(self, group: str, cluster: str, days: int, limit: int) -> Document:
        named, of_group = self._source.group(group, cluster)
        core = self._source.settings.core
        found = requested_advice(self._source.reading, core, named, of_group, days)
        row = found.row
        entries, computed_at = row.pop("advice", []), row.pop("computed_at")
        not_known = [text for text in (row.pop("unknown", None), row.pop("refused")) if text]
        evidence: list[Row] = [
            {"what": f"rebalances that would not have been under {entry['policy']}", "ids": entry["gone_rebalance_ids"]}
            for entry in entries[:limit]
            if entry["gone_rebalances"]
        ]
        link = self._source.link("/advice", cluster=named, group_id=of_group, days=days)
        return self._source.document(
            ToolAnswer(
                [named],
                row,
                {"advice": Listed(picked(entries[:limit], _ENTRY), len(entries), "raise limit")},
                not_known=not_known,
                evidence=[{"what": "advice", "at": computed_at, "link": link}, *evidence],
            )
        )
