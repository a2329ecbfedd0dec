"""Core: one strategy setting, checked for its type. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from reprlib import Repr

import msgspec

from udfs.model.errors import StrategyError
from udfs.model.events import QueueRef

# A message stays readable, however large or deep the wrong value is.
_REPR = Repr()
_REPR.maxstring = _REPR.maxother = 80


def whole_number(settings: Mapping[str, object], name: str, default: int) -> int:
    """Return a setting that is a whole number; absent or null means the default."""
    value = settings.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int):
        raise _illegal(name, "a whole number", value)
    return value


def text(settings: Mapping[str, object], name: str, default: str) -> str:
    """Return a setting that is a text."""
    value = settings.get(name)
    if value is None:
        return default
    if not isinstance(value, str):
        raise _illegal(name, "a text", value)
    return value


def texts(settings: Mapping[str, object], name: str) -> list[str] | None:
    """Return a setting that is a list of texts; None when it is absent."""
    value = settings.get(name)
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(item, str) for item in value):
        raise _illegal(name, "a list of texts", value)
    return list(value)


def text_map(settings: Mapping[str, object], name: str) -> dict[str, str] | None:
    """Return a setting that maps texts to texts; None when it is absent."""
    value = settings.get(name)
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise _illegal(name, "an object of texts", value)
    # A value that is not a text counts as absent, because the real class does not find it either.
    return {str(key): item for key, item in value.items() if isinstance(item, str)}


def queue_lists(settings: Mapping[str, object], name: str) -> list[QueueRef] | dict[str, list[QueueRef]] | None:
    """Return a setting that is a list of queues for all members, or an object of such lists by member."""
    value = settings.get(name)
    if value is None:
        return None
    try:
        if isinstance(value, Mapping):
            return msgspec.convert(
                {key: list(item) for key, item in value.items() if item is not None},
                dict[str, list[QueueRef]],
                from_attributes=True,
            )
        return msgspec.convert(value, list[QueueRef], from_attributes=True)
    except (msgspec.ValidationError, TypeError) as error:
        raise _illegal(name, "a list of queues, or an object of such lists by member", value) from error


def _illegal(name: str, wanted: str, value: object) -> StrategyError:
    return StrategyError("illegal_setting", f"{name} must be {wanted}, not {_REPR.repr(value)}")
