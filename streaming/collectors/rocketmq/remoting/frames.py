"""Shell: frames of the remoting protocol, parsed from bytes and encoded. It does no I/O.

A frame is: four bytes, the length of everything after them; four bytes, the top one the kind of header and three its
length; the header; the body. Headers are JSON or a binary form. A 4.x server answers in the form of the request, a 5.x
server in its configured form (``rocketmq.serialize.type``), JSON by default.

Source: RocketMQ 5.5.0, ``RemotingCommand#decode``, ``RocketMQSerializable#rocketMQProtocolDecode``.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from enum import IntEnum
from typing import Final

import msgspec

from streaming.collectors.rocketmq.remoting import fastjson
from streaming.collectors.rocketmq.remoting.codes import CLIENT_VERSION

# The limit of RocketMQ's own servers and clients: com.rocketmq.remoting.frameMaxLength.
MAX_FRAME_BYTES: Final = 16 * 1024 * 1024
# The longest observed headers carry a stack trace as their remark.
MAX_HEADER_BYTES: Final = 1024 * 1024

_UINT32: Final = struct.Struct(">I")
_BINARY_START: Final = struct.Struct(">hBhii")  # code, language, version, opaque, flag
_KEY_LENGTH: Final = struct.Struct(">h")
_TEXT_LENGTH: Final = struct.Struct(">i")
_RESPONSE: Final = 1
# org.apache.rocketmq.remoting.protocol.LanguageCode, by code.
_LANGUAGES: Final = (
    *("JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY"),
    *("OTHER", "HTTP", "GO", "PHP", "OMS", "RUST", "NODE_JS"),
)


class FrameError(ValueError):
    """The received bytes are not a frame. Nothing after them on the same connection can be trusted."""


class HeaderForm(IntEnum):
    """The form of a header (``SerializeType``)."""

    JSON = 0
    ROCKETMQ = 1


class Frame(msgspec.Struct, frozen=True):
    """One request or response.

    Attributes:
        flag: Bit 0: a response; bit 1: a request that wants no response.
        fields: ``extFields``; absent values are left out.
    """

    code: int
    opaque: int
    flag: int = 0
    fields: Mapping[str, str] = {}
    body: bytes = b""
    remark: str | None = None
    language: str = "PYTHON"
    version: int = CLIENT_VERSION
    form: HeaderForm = HeaderForm.JSON

    @property
    def is_response(self) -> bool:
        """Return whether it is a response; otherwise it is a request or notice of the server."""
        return bool(self.flag & _RESPONSE)

    def answer(self, code: int, body: bytes = b"", **rest: Mapping[str, str] | str | None) -> Frame:
        """Create the response to this request, with the same number and form."""
        return msgspec.structs.replace(
            Frame(code, self.opaque, self.flag | _RESPONSE, body=body, form=self.form, language="JAVA"), **rest
        )


class _JsonHeader(msgspec.Struct):
    code: int
    opaque: int
    flag: int = 0
    version: int = 0
    language: str | int | None = None
    remark: str | None = None
    ext_fields: dict[str, str | None] | None = msgspec.field(default=None, name="extFields")


class _JsonHeaderOut(msgspec.Struct, rename="camel", omit_defaults=True):
    code: int
    opaque: int
    flag: int
    version: int
    language: str
    remark: str | None = None
    ext_fields: Mapping[str, str] | None = None
    serialize_type_current_rpc: str = msgspec.field(default="", name="serializeTypeCurrentRPC")


_decode_json_header = msgspec.json.Decoder(_JsonHeader).decode
_encode_json_header = msgspec.json.Encoder().encode


def encode(frame: Frame) -> bytes:
    """Write a frame with a header of its own form.

    Raises:
        FrameError: A part is longer than its length field allows, or than `MAX_HEADER_BYTES`.
    """
    header = _json_header(frame) if frame.form is HeaderForm.JSON else _binary_header(frame)
    if len(header) > MAX_HEADER_BYTES:
        raise FrameError(f"a header of {len(header)} bytes, more than {MAX_HEADER_BYTES}")
    mark = frame.form << 24 | len(header)
    return b"".join((_UINT32.pack(4 + len(header) + len(frame.body)), _UINT32.pack(mark), header, frame.body))


class FrameReader:
    """Cuts the bytes received over one connection into frames.

    It keeps only the received part of an unfinished frame; a frame that claims to be too long is refused before any of
    it is kept. After a `FrameError` every further call raises one.
    """

    def __init__(self, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._max_frame_bytes = max_frame_bytes
        self._buffer = bytearray()
        self._violation: str | None = None

    @property
    def waiting_bytes(self) -> int:
        """Return the number of bytes of an unfinished frame so far."""
        return len(self._buffer)

    def feed(self, data: bytes | bytearray | memoryview) -> list[Frame]:
        """Add received bytes and return the frames that they complete.

        Raises:
            FrameError: The bytes are not frames. Complete frames before the error, in the same call, are lost.
        """
        if self._violation is not None:
            raise FrameError(self._violation)
        self._buffer += data
        try:
            return self._complete_frames()
        except FrameError as error:
            self._violation = str(error)
            self._buffer.clear()
            raise

    def _complete_frames(self) -> list[Frame]:
        frames: list[Frame] = []
        start = 0
        have = len(self._buffer)
        while have - start >= 4:
            (length,) = _UINT32.unpack_from(self._buffer, start)
            if length < 4 or length > self._max_frame_bytes:
                raise FrameError(f"a frame of {length} bytes; between 4 and {self._max_frame_bytes} are accepted")
            if have - start >= 8:
                # The length is checked as soon as it can be read, so that the client does not wait for a wrong header.
                _check_mark(_UINT32.unpack_from(self._buffer, start + 4)[0], length)
            end = start + 4 + length
            if have < end:
                break
            frames.append(_decode(bytes(memoryview(self._buffer)[start + 4 : end])))
            start = end
        del self._buffer[:start]
        return frames


def _check_mark(mark: int, length: int) -> None:
    form, header_length = mark >> 24, mark & 0xFFFFFF
    if form not in (HeaderForm.JSON, HeaderForm.ROCKETMQ):
        raise FrameError(f"a header of the unknown form {form}")
    if header_length > min(length - 4, MAX_HEADER_BYTES):
        raise FrameError(f"a header of {header_length} bytes in a frame of {length}")


def _decode(payload: bytes) -> Frame:
    (mark,) = _UINT32.unpack_from(payload)
    end = 4 + (mark & 0xFFFFFF)
    header, body = payload[4:end], payload[end:]
    return _from_json(header, body) if mark >> 24 == HeaderForm.JSON else _from_binary(header, body)


def _from_json(header: bytes, body: bytes) -> Frame:
    try:
        read = _decode_json_header(header)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        read = _from_odd_json(header)
    fields = {name: value for name, value in (read.ext_fields or {}).items() if value is not None}
    language = read.language
    if isinstance(language, int):
        language = _language(language)
    return Frame(read.code, read.opaque, read.flag, fields, body, read.remark, language or "OTHER", read.version)


def _from_odd_json(header: bytes) -> _JsonHeader:
    """Parse JSON that only fastjson accepts."""
    try:
        return msgspec.convert(fastjson.read(header), _JsonHeader, strict=False)
    except (fastjson.FastjsonError, msgspec.ValidationError) as error:
        raise FrameError(f"a header that cannot be read: {error}") from None


def _from_binary(header: bytes, body: bytes) -> Frame:
    try:
        code, language, version, opaque, flag = _BINARY_START.unpack_from(header)
        remark, place = _text(header, _BINARY_START.size)
        fields: dict[str, str] = {}
        (size,) = _TEXT_LENGTH.unpack_from(header, place)
        place += 4
        if size < 0 or place + size > len(header):
            raise FrameError(f"fields of {size} bytes in a header of {len(header)}")
        end = place + size
        while place < end:
            (length,) = _KEY_LENGTH.unpack_from(header, place)
            name = _slice(header, place + 2, length)
            place += 2 + length
            value, place = _text(header, place)
            fields[name] = value
        if place != end:
            raise FrameError("a field that is longer than all of them")
    except struct.error:
        raise FrameError(f"a binary header of {len(header)} bytes ends too early") from None
    return Frame(
        code, opaque, flag, fields, body, remark or None, _language(language), version, form=HeaderForm.ROCKETMQ
    )


def _text(header: bytes, place: int) -> tuple[str, int]:
    (length,) = _TEXT_LENGTH.unpack_from(header, place)
    return _slice(header, place + 4, length), place + 4 + length


def _slice(header: bytes, place: int, length: int) -> str:
    if length < 0 or place + length > len(header):
        raise FrameError(f"a text of {length} bytes in a header of {len(header)}")
    return header[place : place + length].decode(errors="replace")


def _language(code: int) -> str:
    return _LANGUAGES[code] if 0 <= code < len(_LANGUAGES) else "OTHER"


def _json_header(frame: Frame) -> bytes:
    return _encode_json_header(
        _JsonHeaderOut(
            code=frame.code,
            opaque=frame.opaque,
            flag=frame.flag,
            version=frame.version,
            language=frame.language,
            remark=frame.remark,
            ext_fields=frame.fields or None,
            serialize_type_current_rpc="JSON",
        )
    )


def _binary_header(frame: Frame) -> bytes:
    language = _LANGUAGES.index(frame.language) if frame.language in _LANGUAGES else _LANGUAGES.index("OTHER")
    try:
        start = _BINARY_START.pack(frame.code, language, frame.version, frame.opaque, frame.flag)
        remark = (frame.remark or "").encode()
        fields = bytearray()
        for name, value in frame.fields.items():
            key, text = name.encode(), value.encode()
            fields += _KEY_LENGTH.pack(len(key)) + key + _TEXT_LENGTH.pack(len(text)) + text
    except struct.error as error:
        raise FrameError(f"a binary header cannot encode it: {error}") from None
    return b"".join((start, _TEXT_LENGTH.pack(len(remark)), remark, _TEXT_LENGTH.pack(len(fields)), fields))
