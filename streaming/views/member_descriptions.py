"""Shell: what a member's session described at a time: its topics, strategies, settings. No I/O."""

from __future__ import annotations

import bisect
import json
from typing import Any, Final

from streaming.tables.schema import Row
from udfs.model.member_fields import SHOWN

_LISTS: Final = ("subscriptions", "strategies")


def description(session: Row, time_ms: int | None) -> dict[str, Any]:
    """Return the fields of a member's description as of a time within its session; None for the newest."""
    fields: dict[str, Any] = {name: session.get(name) for name in SHOWN}
    earlier = session.get("earlier") or []
    place = len(earlier)
    if time_ms is not None:
        place = bisect.bisect_right(earlier, time_ms, key=lambda former: former["until_ms"])
    if place < len(earlier):
        fields |= {name: value for name, value in earlier[place].items() if name != "until_ms"}
    settings = fields["strategy_settings"]
    fields |= {name: None if fields[name] is None else tuple(fields[name]) for name in _LISTS}
    return fields | {"strategy_settings": None if settings is None else json.loads(settings)}
