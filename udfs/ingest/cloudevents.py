"""Core: removes CloudEvents envelopes in structured mode. No I/O.

Source: CloudEvents 1.0.2, JSON event format: ``specversion``, ``id``, ``source`` and ``type`` are required;
``data`` holds JSON, ``data_base64`` bytes.
"""

from __future__ import annotations

import base64
import binascii

import msgspec

ENVELOPE_VIOLATIONS = {
    "cloudevent_unknown_specversion": "specversion is not 1.x",
    "cloudevent_without_id": "an envelope needs an id: text that is not empty",
    "cloudevent_without_source": "an envelope needs a source: text that is not empty",
    "cloudevent_without_data": "an envelope needs data: the event, as an object or as its JSON text",
    "cloudevent_ill_typed_data_base64": "data_base64 is not base64",
}


class Envelope(msgspec.Struct, frozen=True):
    """The content of an envelope.

    Attributes:
        data: The event's own JSON. event_id: Source and id together. violation: A key of ``ENVELOPE_VIOLATIONS``.
    """

    data: bytes = b""
    event_id: str = ""
    violation: str | None = None


class _Wire(msgspec.Struct):
    specversion: object
    id: object = None
    source: object = None
    data: msgspec.Raw = msgspec.Raw()
    data_base64: object = None


_decode = msgspec.json.Decoder(_Wire).decode


def unwrap(text: bytes) -> Envelope | None:
    """Remove the envelope; return None if there is none."""
    try:
        wire = _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not (isinstance(wire.specversion, str) and wire.specversion.startswith("1.")):
        return Envelope(violation="cloudevent_unknown_specversion")
    if not (isinstance(wire.id, str) and wire.id):
        return Envelope(violation="cloudevent_without_id")
    if not (isinstance(wire.source, str) and wire.source):
        return Envelope(violation="cloudevent_without_source")
    data = _data(wire)
    if isinstance(data, str):
        return Envelope(violation=data)
    return Envelope(data=data, event_id=f"{wire.source} {wire.id}")


def _data(wire: _Wire) -> bytes | str:
    data = bytes(wire.data)
    if data.startswith(b'"'):  # JSON text inside JSON, which some producers send
        return msgspec.json.decode(data, type=str).encode()
    if data and data != b"null":
        return data
    if wire.data_base64 is None:
        return "cloudevent_without_data"
    try:
        return base64.b64decode(str(wire.data_base64), validate=True)
    except (binascii.Error, ValueError):
        return "cloudevent_ill_typed_data_base64"
