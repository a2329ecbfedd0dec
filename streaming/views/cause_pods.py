"""Shell: in which pods the members ran that a rebalance's causes name, and how those pods ended before them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from streaming.tables.schema import Row
from streaming.terminal.format import span_of_time
from streaming.views.pods import NO_POD, Pods, pod_fields
from streaming.views.reader import Reader, Within

# Kinds of annotations after which the members of a pod are gone, or begin anew.
_ENDS: Final = frozenset(("container_ended", "pod_deleted", "pod_evicted", "pod_preempted"))
_DEPARTED: Final = {
    "session_expired": "its session expired",
    "member_left": "it left",
    "member_gone": "it was found to be gone",
}


def with_cause_pods(reader: Reader, causes: Sequence[Row], sessions: Mapping[str, Row], departed_at: int) -> list[Row]:
    """Return causes with the columns of their members' pods, and ``pod_text``, a sentence on the pod; null if unknown.

    Args:
        sessions: Member id -> its row of ``members``. departed_at: When the rebalance was.
    """
    of_causes = [sessions.get(cause["member_id"], {}) for cause in causes]
    pods = Pods.around(reader, [session for session in of_causes if session])
    lives = [pods.of(session) for session in of_causes]
    names = {life["pod"] for life in lives if life is not None}
    ends: list[Row] = []
    if names:
        began = Within(min(session["joined_at"] for session in of_causes if session), departed_at + 1)
        ends = reader.rows("annotations", where={"kind": {*_ENDS}, "pod": names, "began_at": began})
    return [
        cause | _about(cause, session, life, ends, departed_at)
        for cause, session, life in zip(causes, of_causes, lives, strict=True)
    ]


def _about(cause: Row, session: Mapping[str, Any], life: Row | None, ends: Sequence[Row], departed_at: int) -> Row:
    if life is None:
        return {**NO_POD, "pod_text": None}
    departed = _DEPARTED.get(cause["kind"])
    left_at = session.get("left_at")
    until = departed_at if left_at is None else min(left_at, departed_at)
    same = [
        end
        for end in ends
        if all(end[name] == life[name] for name in ("platform", "namespace", "pod"))
        and session["joined_at"] <= end["began_at"] <= until
    ]
    text = life["text"].rpartition(" has the address ")[0]
    if departed and same:
        last = max(same, key=lambda end: (end["began_at"], end["annotation_id"]))
        text = f"{last['text']} {span_of_time(until - last['began_at'])} before {departed}"
    elif life["image"]:
        text = f"it ran in {text} with image {life['image']}"
    return {**pod_fields(life), "pod_text": text}
