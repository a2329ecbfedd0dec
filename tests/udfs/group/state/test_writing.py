"""A group is frozen, with all that it consists of; a contract in ``pyproject.toml`` says who may write it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from udfs.group.state.episodes import Episode, Root
from udfs.group.state.group import Group
from udfs.group.state.recorded_group import RecordedGroup
from udfs.group.state.writing import assign, elements, entries

# Rows and changes as the journal has them; of episodes copies are changed, then taken over.
OUTPUT = "udfs.model"
COPIED = {Episode, Root}
# As the event has them.
OF_EVENTS = ["Member.strategy_settings"]


def parts(kind: Any, known: set[type]) -> Iterator[type]:
    """Yield each struct of a group's state, the whole first."""
    for inner in get_args(kind):
        yield from parts(inner, known)
    is_struct = isinstance(kind, type) and issubclass(kind, msgspec.Struct)
    if is_struct and kind not in known and not kind.__module__.startswith(OUTPUT):
        known.add(kind)
        yield kind
        for hint in get_type_hints(kind).values():
            yield from parts(hint, known)


def test_every_part_of_a_group_is_frozen() -> None:
    found = set(parts(Group, set()))
    assert RecordedGroup in found
    assert {part for part in found if not part.__struct_config__.frozen} == COPIED


def test_no_field_of_a_group_is_a_container_that_can_be_changed() -> None:
    changeable = [
        f"{part.__name__}.{name}"
        for part in parts(Group, set())
        for name, hint in get_type_hints(part).items()
        if part not in COPIED and ("dict[" in str(hint) or "list[" in str(hint) or "set[" in str(hint))
    ]
    assert changeable == OF_EVENTS


def test_a_group_changes_in_place_where_it_is_written() -> None:
    group = Group()
    with pytest.raises(AttributeError, match="immutable"):
        group.counted = 1  # type: ignore[misc]
    members, evidence = group.counts, group.reporters
    assign(group, counted=2, polled=True)
    entries(group.counts)["t"] = 3
    elements(group.reporters).append("a")
    assert (group.counted, group.polled, members, evidence) == (2, True, {"t": 3}, ["a"])
