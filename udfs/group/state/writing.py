"""Core: how a group's state changes: all of it is frozen, and these functions alone write it in place. No I/O.

Only the modules that the contract "Who writes a group's state" in ``pyproject.toml`` lists may import them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

if TYPE_CHECKING:
    # To mypy it is the function of that type: names and types of the values must be those of the fields.
    from dataclasses import replace

    assign = replace
else:
    _set = msgspec.structs.force_setattr  # noqa: TID251

    def assign(part: msgspec.Struct, /, **values: Any) -> None:
        """Set fields of a group, or of a part of it, in place."""
        for name in values:
            _set(part, name, values[name])


def entries(mapping: Mapping[_Key, _Value]) -> dict[_Key, _Value]:
    """Return a mapping of a group's state as what it is, to be changed in place."""
    return mapping  # type: ignore[return-value]


def elements(sequence: Sequence[_Value]) -> list[_Value]:
    """Return a list of a group's state as what it is, to be changed in place."""
    return sequence  # type: ignore[return-value]
