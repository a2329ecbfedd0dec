"""Shell: events as the lines that a collector would write."""

from __future__ import annotations

import msgspec

from streaming.simulator.timeline import Delivery
from streaming.simulator.truth import rfc3339
from udfs.model.events import GroupSnapshot


def line(delivery: Delivery) -> bytes:
    """Write one event as one JSON line; fields that it does not carry are left out.

    The other notation is equivalent: RFC 3339 instead of epoch ms, keys in another order.
    """
    plain = _without_nothing(msgspec.to_builtins(delivery.event))
    if not isinstance(plain, dict):
        raise TypeError(f"{type(delivery.event).__name__} is not an event")
    if isinstance(delivery.event, GroupSnapshot):
        plain.setdefault("members", [])  # the event reports that there are no members
    if delivery.otherwise_written:
        plain["event_time"] = rfc3339(int(plain["event_time"]))
        plain = {key: plain[key] for key in sorted(plain, reverse=True)}
    if delivery.envelope is not None and "event_id" in plain:
        plain = {
            "specversion": "1.0",
            "id": plain.pop("event_id"),
            "source": delivery.envelope,
            "type": f"rebalance.{plain['type']}",
            "datacontenttype": "application/json",
            "data": plain,
        }
    return msgspec.json.encode(plain) + b"\n"


def _without_nothing(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_nothing(part) for key, part in value.items() if part is not None and part is not False}
    if isinstance(value, list | tuple):
        return [_without_nothing(part) for part in value]
    return value
