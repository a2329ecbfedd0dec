"""Shell: what is or was wrong."""

from __future__ import annotations

from streaming.tables import Row
from streaming.views.reading import Reader


def findings(
    reader: Reader,
    *,
    group: str | None = None,
    cluster: str | None = None,
    closed: bool = False,
    kind: str | None = None,
) -> list[Row]:
    """Answer the open findings (or all), the gravest first, then the newest."""
    return reader.ask(
        f"""SELECT * FROM findings WHERE {"true" if closed else "closed_at IS NULL"}
            ORDER BY closed_at IS NOT NULL, list_position(['critical', 'warning', 'info'], severity), opened_at DESC,
                finding_id""",
        {"findings": reader.read("findings", where={"cluster": cluster, "group_id": group, "kind": kind})},
    )
