"""Core: how a group's state changes: all of it is frozen, and these functions alone write it in place. No I/O.

Only the modules that the contract "Who writes a group's state" in ``pyproject.toml`` lists may import them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

if TYPE_CHECKING:
    # To mypy it is the function of that type: names and types of the values must be those of the fields.
    from dataclasses import replace

    assign = replace
else:

    def assign(part: msgspec.Struct, /, **values: Any) -> None:
        """Set fields of a group, or of a part of it, in place."""
        for name, value in values.items():
            msgspec.structs.force_setattr(part, name, value)  # noqa: TID251


def entries(mapping: Mapping[_Key, _Value]) -> dict[_Key, _Value]:
    """Return a mapping of a group's state as what it is, to be changed in place."""
    return cast("dict[_Key, _Value]", mapping)


def elements(sequence: Sequence[_Value]) -> list[_Value]:
    """Return a list of a group's state as what it is, to be changed in place."""
    return cast("list[_Value]", sequence)
