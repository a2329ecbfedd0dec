"""Dashboard: one rebalance with its details, and every member's queues before, after and as reported."""

from __future__ import annotations

from typing import Any, Final

from streaming.tables.schema import Row
from streaming.terminal.format import queue_name, queues_text
from streaming.views.audit_texts import owners_text, reason_text
from streaming.views.explain import explain
from streaming.views.phase_texts import Part, part_text
from streaming.views.reader import Reader
from streaming.views.rebalance_spans import is_after, is_before, spans_of
from streaming.views.related_annotations import DEFAULT_SPANS, AnnotationSpans
from streaming.views.siblings import HostSessions, Siblings

# The page shows at most this many moved queues, and members, of each kind.
MAX_ROWS = 1_000

_ELSEWHERE: Final = (("siblings", Siblings), ("host_sessions", HostSessions))


def rebalance_detail(
    reader: Reader, rebalance_id: str, *, most: int = MAX_ROWS, near: AnnotationSpans = DEFAULT_SPANS
) -> dict[str, Any]:
    """Return a rebalance with its causes, its moved queues by origin, and its members side by side.

    Args:
        rebalance_id: The id, or a prefix of it.
        most: The limit for moved queues, by origin, and for members. near: Which annotations are near.

    Returns:
        As ``streaming.views.explain``, causes with ``siblings_text``; with ``sides``: one row per member with its
        queues as text, ``origins``, and the audit's ``queue_rows``.

    Raises:
        NotFoundError, AmbiguousError: None matches, or several.
    """
    found = explain(reader, rebalance_id, near)
    rebalance = found["rebalance"]
    sides = _sides(spans_of(reader, rebalance), rebalance)
    changed = [side for side in sides if side["computed_before"] != side["computed_after"] or side["differs"]]
    return found | {
        "causes": [cause | {"siblings_text": _siblings_text(cause)} for cause in found["causes"]],
        "audit": _shown(found["audit"]),
        "part_text": part_text(rebalance, [Part(**part) for part in found["parts"]]),
        "sides": (changed + [side for side in sides if side not in changed])[:most],
        "member_total": len(sides),
        "changed": len(changed),
        "origins": sorted(found["moves"]),
        "moves": {origin: moves[:most] for origin, moves in found["moves"].items()},
        "moved": {origin: len(moves) for origin, moves in found["moves"].items()},
    }


def _siblings_text(cause: Row) -> str | None:
    """Return the fate of a departed member's client and host in other groups; None if none is there or known."""
    texts = [kind(**cause[name]).text for name, kind in _ELSEWHERE if cause.get(name)]
    return "; ".join(texts) or None


def _shown(audit: Row | None) -> Row | None:
    """Return an audit with its reason as a sentence, and its differing queues as rows of a table."""
    if audit is None:
        return None
    queues = [
        {
            "queue": queue_name(queue["topic"], queue["broker"], queue["queue_id"]),
            "kind": queue["kind"],
            "expected_text": owners_text(queue["expected"]) if audit["verdict"] == "differs" else None,
            "reported_text": owners_text(queue["reported"]),
        }
        for queue in audit["differing"] or []
    ]
    return audit | {"reason_text": reason_text(audit["reason"]), "queue_rows": queues}


def _sides(spans: list[Row], rebalance: Row) -> list[Row]:
    held: dict[str, dict[str, list[Row]]] = {}
    for span in spans:
        member = held.setdefault(span["member_id"], {})
        if is_before(span, rebalance):
            member.setdefault(f"{span['origin']}_before", []).append(span)
        if is_after(span, rebalance):
            member.setdefault(f"{span['origin']}_after", []).append(span)
    is_reported = any(span["origin"] == "reported" for span in spans)
    names = ("computed_before", "computed_after", "reported_before", "reported_after")
    rows = []
    for member_id, queues in sorted(held.items()):
        texts: Row = {name: queues_text(queues.get(name, [])) for name in names}
        texts["differs"] = is_reported and texts["computed_after"] != texts["reported_after"]
        rows.append({"member_id": member_id, **texts})
    return rows
