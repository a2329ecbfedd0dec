"""Core: parses the bytes of one line or record into an event, or the reason why it is not one. No I/O.

``parse`` defines the result for one input. ``decode_lines`` is the fast way for many: if it accepts an input, ``parse``
accepts it with the same result; it leaves everything else to ``parse``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias, TypeVar

import msgspec

from udfs.ingest import diagnosis
from udfs.ingest.cloudevents import ENVELOPE_VIOLATIONS, unwrap
from udfs.ingest.validation import validate
from udfs.model.annotations import Annotation, ContractEvent
from udfs.model.config import CoreConfig
from udfs.model.events import (
    AnyEvent,
    AssignmentReported,
    GroupSnapshot,
    Heartbeat,
    MemberFields,
    Name,
    NoHeartbeat,
    Timestamp,
)
from udfs.model.rejection import Rejection
from udfs.model.systems import System
from udfs.model.timestamps import EARLIEST_MS, LATEST_MS, read_timestamp

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n"
_Timed = TypeVar("_Timed", bound=msgspec.Struct)


class BareHeartbeat(
    msgspec.Struct, kw_only=True, forbid_unknown_fields=True, gc=False, tag_field="type", tag="heartbeat"
):
    """A heartbeat without a description, as the fast path parses it; only its types have been checked."""

    schema_version: Literal[1]
    event_time: Timestamp
    system: System
    cluster: Name
    event_id: Name | None = None
    group: Name
    member_id: Name


Line: TypeAlias = BareHeartbeat | NoHeartbeat
_decode_any = msgspec.json.Decoder(ContractEvent).decode
_decode_line = msgspec.json.Decoder(Line).decode
_DESCRIPTION = tuple(field.name for field in msgspec.structs.fields(MemberFields))
_UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def is_blank(raw: bytes) -> bool:
    """Return whether a line is blank: it is neither an event nor a rejection."""
    return not raw.removeprefix(BYTE_ORDER_MARK).strip(_BLANK)


def is_bare(event: Heartbeat) -> bool:
    """Return whether a heartbeat has no description, so that it travels packed."""
    return all(getattr(event, name) is None for name in _DESCRIPTION)


def parse(raw: bytes, batch_ms: int, config: CoreConfig) -> ContractEvent | Rejection:
    """Parse one event.

    Args:
        raw: One line or record, not blank. batch_ms: The batch's own timestamp.
    Returns: the event, all its times in epoch ms; or the reason why it is not one.
    """
    text = raw.removeprefix(BYTE_ORDER_MARK)
    violation = _bytes_violation(raw, text, config)
    if violation is not None:
        return violation
    event = _decode(text)
    return event if isinstance(event, Rejection) else _checked(event, raw, batch_ms, config)


def admit(event: AnyEvent, raw: bytes, batch_ms: int, config: CoreConfig) -> ContractEvent | Rejection:
    """Finish one line of ``decode_lines``, with the same result as ``parse``."""
    violation = _bytes_violation(raw, raw, config)
    return violation if violation is not None else _checked(event, raw, batch_ms, config)


def decode_lines(lines: Iterable[bytes]) -> list[Line | None]:
    """Decode many lines fast: for each, the event with only its types checked, or None to leave it to ``parse``.

    A heartbeat with a description, or with fields beyond the contract, is also None.
    """
    decoded: list[Line | None] = []
    rest: Iterator[bytes] = iter(lines)
    while True:
        try:
            # Lines decoded before an unreadable one stay in the list.
            decoded.extend(map(_decode_line, rest))
        except _UNDECODABLE:
            decoded.append(None)
        else:
            return decoded


def _bytes_violation(raw: bytes, text: bytes, config: CoreConfig) -> Rejection | None:
    if len(raw) > config.max_event_bytes:
        return Rejection("oversized_event", f"{len(raw)} bytes; at most {config.max_event_bytes} are read")
    # The decoder skips the text of unknown fields unread.
    if not text.isascii():
        try:
            text.decode()
        except UnicodeDecodeError as error:
            return Rejection("not_utf8", f"byte {error.start}: {error.reason}")
    return None


def _checked(event: ContractEvent, raw: bytes, batch_ms: int, config: CoreConfig) -> ContractEvent | Rejection:
    rejection = _read_times(event, batch_ms, config) or validate(event, raw)
    if rejection is None:
        return event
    return msgspec.structs.replace(rejection, cluster=event.cluster, group_id=getattr(event, "group", None))


def _decode(text: bytes) -> ContractEvent | Rejection:
    try:
        event: ContractEvent = _decode_any(text)
    except _UNDECODABLE as error:
        failure: Exception = error
    else:
        return event
    envelope = unwrap(text)
    if envelope is None:
        return diagnosis.diagnose(text, failure)
    if envelope.violation is not None:
        return Rejection(envelope.violation, ENVELOPE_VIOLATIONS[envelope.violation])
    try:
        event = _decode_any(envelope.data)
    except _UNDECODABLE as error:
        return diagnosis.diagnose(envelope.data, error)
    event.event_id = envelope.event_id
    return event


def _read_times(event: ContractEvent, batch_ms: int, config: CoreConfig) -> Rejection | None:
    read = _time_of(event.event_time, "event_time")
    if isinstance(read, Rejection):
        return read
    event.event_time = read
    if isinstance(event, Annotation):
        return _read_span(event)
    if read > batch_ms + config.max_clock_skew_ms:
        ahead = read - batch_ms
        return Rejection("event_time_ahead_of_clock", f"{ahead} ms ahead; at most {config.max_clock_skew_ms}")
    if isinstance(event, GroupSnapshot):
        for thing in (event, *event.members):
            for name in ("joined_at", "last_heartbeat_at"):
                value = getattr(thing, name, None)
                if value is not None:
                    read = _time_of(value, name)
                    if isinstance(read, Rejection):
                        return read
                    setattr(thing, name, read)
        departures = _timed(event.departures or (), ("at",))
        if isinstance(departures, Rejection):
            return departures
        event.departures = departures if event.departures else event.departures
        revoked = _timed(event.revoked or (), ("revoked_at",))
        if isinstance(revoked, Rejection):
            return revoked
        event.revoked = revoked if event.revoked else event.revoked
    elif isinstance(event, AssignmentReported):
        queues = _timed(event.queues, ("held_since", "last_pull_at", "last_consume_at"))
        if isinstance(queues, Rejection):
            return queues
        event.queues = queues
    return None


def _read_span(event: Annotation) -> Rejection | None:
    """Parse the times of an annotation, which may be ahead of the batch: it moves no clock."""
    for name, field in (("from", "from_"), ("to", "to")):
        value = getattr(event, field)
        if value is not None:
            read = _time_of(value, name)
            if isinstance(read, Rejection):
                return read
            setattr(event, field, read)
    return None


def _timed(values: tuple[_Timed, ...], names: tuple[str, ...]) -> tuple[_Timed, ...] | Rejection:
    """Parse the times inside an event."""
    timed = []
    for value in values:
        times: dict[str, int] = {}
        for name in names:
            time = getattr(value, name)
            if time is not None:
                read = _time_of(time, name)
                if isinstance(read, Rejection):
                    return read
                times[name] = read
        timed.append(msgspec.structs.replace(value, **times))
    return tuple(timed)


def _time_of(time: int | str, name: str) -> int | Rejection:
    if isinstance(time, str):
        read = read_timestamp(time)
        if read == "without_zone":
            return Rejection(f"{name}_without_zone", f"{time!r:.100} has no time zone: Z or an offset is required")
        if not isinstance(read, int):
            return Rejection(f"{name}_unparsable", f"{time!r:.100} is not an RFC 3339 time")
        time = read
    if time < EARLIEST_MS:
        hint = "; epoch seconds? milliseconds are required" if time * 1000 >= EARLIEST_MS else ""
        return Rejection(f"{name}_before_2000", f"{time} ms is before 2000-01-01{hint}")
    if time > LATEST_MS:
        return Rejection(f"{name}_after_2100", f"{time} ms is after 2100-01-01")
    return time
