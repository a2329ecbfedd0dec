"""Shell: the spans of ownership before and after a rebalance, compared over its whole length."""

from __future__ import annotations

from streaming.tables.schema import Row
from streaming.views.phase_texts import has_reconciliation
from streaming.views.reader import Reader, Within


def spans_of(reader: Reader, rebalance: Row) -> list[Row]:
    """Return the spans of its group that begin, end or are open within a rebalance, by queue."""
    where = {
        "cluster": rebalance["cluster"],
        "group_id": rebalance["group_id"],
        "valid_from": Within(until_ms=rebalance["event_time"] + 1),
        "valid_to": Within(since_ms=began_ms(rebalance, "reported"), or_null=True),
    }
    found = reader.rows("assignments", where=where)
    found = [span for span in found if is_before(span, rebalance) or is_after(span, rebalance)]
    return sorted(found, key=lambda span: (span["topic"], span["broker"] or "", span["queue_id"], span["member_id"]))


def is_before(span: Row, rebalance: Row) -> bool:
    """Return whether a queue had the owner of a span when the rebalance began."""
    began = began_ms(rebalance, span["origin"])
    return bool(span["valid_from"] < began) and (span["valid_to"] is None or span["valid_to"] >= began)


def is_after(span: Row, rebalance: Row) -> bool:
    """Return whether a queue has the owner of a span when the rebalance is complete."""
    at = rebalance["event_time"]
    return bool(span["valid_from"] <= at) and (span["valid_to"] is None or span["valid_to"] > at)


def is_new(span: Row, rebalance: Row) -> bool:
    """Return whether a span began within a rebalance."""
    return bool(began_ms(rebalance, span["origin"]) <= span["valid_from"] <= rebalance["event_time"])


def began_ms(rebalance: Row, origin: str) -> int:
    """Return the time from which a rebalance changes the owners of queues.

    Members of Kafka's newer protocols give queues up and take them over one by one, from the epoch on: their reports
    change before the rebalance is complete. Everything else changes when it is complete, the computed assignment
    always.

    Args:
        origin: The spans' origin.

    Example:
        >>> newer = {"strategy": "kafka.server.uniform", "began_at": 40_000, "event_time": 47_000}
        >>> began_ms(newer, "reported"), began_ms(newer, "computed")
        (40000, 47000)
    """
    began: int | None = rebalance.get("began_at")
    at: int = rebalance["event_time"]
    if origin != "reported" or began is None or not has_reconciliation(rebalance):
        return at
    return min(began, at)
