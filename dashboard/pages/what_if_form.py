"""Dashboard: the values of the form of a planned change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streaming.machine.clock import now_ms
from streaming.tables.schema import Row
from streaming.views.wished_changes import strategies_of
from udfs.model.systems import SYSTEMS


def form_of(group: Row, values: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the values of a group's form for its template.

    Args:
        group: Has cluster, group_id and system. values: The parameters of the address; none for an empty form.
    """
    return {
        "form": {
            "cluster": group["cluster"],
            "group": group["group_id"],
            "values": {name: text for name, text in (values or {}).items() if name not in ("cluster", "group")},
            "strategies": strategies_of(group["system"]),
            "has_static": SYSTEMS[group["system"]].has_static_members,
            "computed_at": now_ms(),
        }
    }
