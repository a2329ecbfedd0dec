"""Core: finds out why bytes do not decode into an event. No I/O.

It never decides whether an input is an event, only why it is not one. Reasons are checked in a fixed order, so that the
order of an object's keys does not matter: the bytes, the version, the type, then the fields as the contract lists them.
"""

from __future__ import annotations

import json
import re
from typing import Any, get_args

import msgspec

from udfs.model.annotations import ContractEvent
from udfs.model.events import SCHEMA_VERSION
from udfs.model.rejection import Rejection

EVENT_TYPES: dict[str, Any] = {cls.__struct_config__.tag: cls for cls in get_args(ContractEvent)}
# for each field, in the order of the contract: name, type, whether it is required
_FIELDS = {
    kind: [(field.encode_name, field.type, field.required) for field in msgspec.structs.fields(cls)]
    for kind, cls in EVENT_TYPES.items()
}
_SURROGATE = re.compile("[\ud800-\udfff]")
_MISSING = re.compile(r"Object missing required field `(\w+)`(?: - at `(.*)`)?")
_PLACE = re.compile(r" - at `(.*)`$")
_FIELD_OF_PLACE = re.compile(r"\.(\w+)(?:\[[^\]]*\])*$")
_VIOLATIONS = (
    # (msgspec's message, the reason before the field's name)
    (re.compile(r"Invalid enum value"), "unknown"),
    (re.compile(r"Expected `int` >= "), "negative"),
    (re.compile(r"Expected `int` <= "), "out_of_range"),
    (re.compile(r"Expected `str` of length >= "), "empty"),
    (re.compile(r"Expected `str` of length <= "), "too_long"),
    (re.compile(r"Expected `str` matching "), "malformed"),
    (re.compile(r"Expected `array` of length <= "), "too_many"),
    (re.compile(r"Expected "), "ill_typed"),
)


def diagnose(text: bytes, failure: Exception) -> Rejection:
    """Return the reason why bytes are not an event.

    Args:
        text: The undecodable text, without a byte order mark. failure: The decoder's message.
    """
    try:
        content = msgspec.json.decode(text)
    except RecursionError:
        return Rejection("too_deep", "nested too deeply")
    except msgspec.ValidationError as error:
        return Rejection("number_out_of_range", str(error))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return _not_json(text, error)
    if not isinstance(content, dict):
        return Rejection("not_an_object", f"a JSON {_json_type(content)}, where an object is required")
    rejection = (
        _version_violation(content) or _type_violation(content) or _field_violation(content) or _rest(text, failure)
    )
    return msgspec.structs.replace(rejection, cluster=_phrase(content, "cluster"), group_id=_phrase(content, "group"))


def _not_json(text: bytes, error: Exception) -> Rejection:
    constants: list[str] = []
    try:
        content = json.loads(text, parse_constant=constants.append)
    except RecursionError:
        return Rejection("too_deep", "nested too deeply")
    except (ValueError, UnicodeDecodeError):
        message = str(error)
        if "truncated" in message:
            return Rejection("truncated_json", "the text ends inside the object")
        if "trailing characters" in message:
            return Rejection("trailing_bytes", message)
        return Rejection("not_json", message)
    if constants:
        return Rejection("number_not_finite", f"{constants[0]} is not a JSON number")
    if _SURROGATE.search(json.dumps(content, ensure_ascii=False)):
        return Rejection("lone_surrogate", "half of a surrogate pair is not a character")
    return Rejection("not_json", str(error))


def _version_violation(content: dict[str, Any]) -> Rejection | None:
    if "schema_version" not in content:
        return Rejection("missing_schema_version", f"required: {SCHEMA_VERSION}")
    version = content["schema_version"]
    if type(version) is not int:
        return Rejection("ill_typed_schema_version", f"a JSON {_json_type(version)}; required: {SCHEMA_VERSION}")
    if version != SCHEMA_VERSION:
        return Rejection("unknown_schema_version", f"{version}; this monitor supports {SCHEMA_VERSION}")
    return None


def _type_violation(content: dict[str, Any]) -> Rejection | None:
    if "type" not in content:
        return Rejection("missing_type", f"required: one of {', '.join(EVENT_TYPES)}")
    kind = content["type"]
    if not isinstance(kind, str):
        return Rejection("ill_typed_type", f"a JSON {_json_type(kind)}, where text is required")
    if kind not in EVENT_TYPES:
        return Rejection("unknown_type", f"{kind!r:.100}; known: {', '.join(EVENT_TYPES)}")
    return None


def _field_violation(content: dict[str, Any]) -> Rejection | None:
    for name, kind, needed in _FIELDS[content["type"]]:
        if name not in content:
            if needed:
                return Rejection(f"missing_{name}", f"{content['type']} needs {name}")
            continue
        try:
            msgspec.convert(content[name], kind)
        except RecursionError:
            return Rejection("too_deep", f"nested too deeply - at `$.{name}`")
        except msgspec.ValidationError as error:
            return _named(str(error), name)
    return None


def _named(message: str, field: str) -> Rejection:
    """Convert the decoder's sentence about one field into a reason: its kind, and the innermost field's name."""
    place = _PLACE.search(message)
    path = f"$.{field}" + (place[1].removeprefix("$") if place else "")
    sentence = _PLACE.sub("", message) + f" - at `{path}`"
    missing = _MISSING.match(message)
    if missing:
        return Rejection(f"missing_{missing[1]}", sentence)
    inner = _FIELD_OF_PLACE.search(path)
    for pattern, kind in _VIOLATIONS:
        if pattern.match(message):
            return Rejection(f"{kind}_{inner[1] if inner else field}", sentence)
    return Rejection(f"invalid_{field}", sentence)


def _rest(text: bytes, failure: Exception) -> Rejection:
    """Return the remaining case: a key that occurs twice, once with a wrong value."""
    repeated: list[str] = []

    def note_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys: set[str] = set()
        for key, _ in pairs:
            if key in keys:
                repeated.append(key)
            keys.add(key)
        return dict(pairs)

    json.loads(text, object_pairs_hook=note_repeats)
    if repeated:
        return Rejection("duplicate_key", f"{repeated[0]!r:.100} occurs twice; {failure}")
    return Rejection("invalid_event", str(failure))


def _phrase(content: dict[str, Any], field: str) -> str | None:
    value = content.get(field)
    return value if isinstance(value, str) and value else None


def _json_type(value: object) -> str:
    names = {dict: "object", list: "array", str: "string", bool: "boolean", int: "number", float: "number"}
    return names.get(type(value), "null")
