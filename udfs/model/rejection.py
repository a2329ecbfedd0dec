"""Core: why an input is rejected, and the row that keeps it whole. No I/O."""

from __future__ import annotations

import hashlib

import msgspec

from udfs.model.journal import Rejected


class Rejection(msgspec.Struct, frozen=True):
    """The reason why an input is not an event.

    Attributes:
        reason: A stable snake_case code. detail: A sentence for people, with the place inside the event.
        cluster, group_id: The input's cluster and group, if they can be read.
    """

    reason: str
    detail: str
    cluster: str | None = None
    group_id: str | None = None


def rejected(
    rejection: Rejection, raw: bytes, *, source: str, position: str, seen_at: int, raw_limit_bytes: int
) -> Rejected:
    """Return the row of a rejected input: its text up to the limit, its full length and SHA-256.

    Bytes that are not UTF-8 are kept as ``\\xNN``.
    """
    return Rejected(
        source=source,
        position=position,
        raw=_text(raw, raw_limit_bytes),
        reason=rejection.reason,
        detail=rejection.detail,
        seen_at=seen_at,
        raw_length=len(raw),
        raw_sha256=hashlib.sha256(raw).hexdigest(),
        cluster=rejection.cluster,
        group_id=rejection.group_id,
    )


def _text(raw: bytes, limit: int) -> str:
    if len(raw) > limit:
        end = limit
        # A character is never cut in two: step back over at most three continuation bytes.
        while end > max(0, limit - 3) and raw[end] & 0xC0 == 0x80:
            end -= 1
        raw = raw[:end]
    return raw.decode("utf-8", "backslashreplace")


def key_collision(kind: str, name: str) -> str:
    """Return the detail of an event whose group or topic has the same key as another one."""
    return f"its 64-bit key equals that of {kind} {name}: it is not followed; rename one of them"
