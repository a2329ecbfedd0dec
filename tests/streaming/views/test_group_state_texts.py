"""States and generations of groups as people read them."""

from __future__ import annotations

import pytest

from streaming.tables.schema import GROUPS
from streaming.views.group_state_texts import STATE_COLUMNS, generation_text, is_under_way, state_text
from udfs.model.journal import TOPOLOGY_NOT_READY, UNDER_WAY


@pytest.mark.parametrize(
    ("generation", "epoch", "target", "text"),
    [
        (7, 7, 7, "7"),
        (7, 8, 7, "7 (epoch 8, target 7)"),
        (None, 1, None, "- (epoch 1, target -)"),
        (7, None, None, "7"),
        (None, None, None, "-"),
    ],
)
def test_a_group_between_two_epochs_shows_both(
    generation: int | None, epoch: int | None, target: int | None, text: str
) -> None:
    assert generation_text({"generation": generation, "epoch": epoch, "assignment_epoch": target}) == text


@pytest.mark.parametrize(
    ("state", "members", "protocol", "generation", "text"),
    [
        ("stable", 1, None, 3, "stable"),
        ("empty", 0, None, 3, "empty"),
        ("not_followed", 1, "share", 3, "stable (not_followed)"),
        ("not_followed", 0, "share", 3, "empty (not_followed)"),
        ("not_followed", 0, "share", None, "not_followed"),  # by admin calls, which do not show its members
        ("not_followed", 2, "connect", 3, "stable (not_followed)"),
        ("not_followed", 0, "streams", 3, "empty (not_followed)"),
    ],
)
def test_a_group_that_is_not_followed_has_the_state_that_its_members_make(
    state: str, members: int, protocol: str | None, generation: int | None, text: str
) -> None:
    row = {"state": state, "members": members, "protocol": protocol, "generation": generation, "epoch": generation}
    assert state_text(row | {"assignment_epoch": generation, "waits": None}) == text


@pytest.mark.parametrize(
    ("epoch", "target", "waits", "text"),
    [
        (3, 3, None, "stable (not_followed)"),
        (3, 3, "m has yet to revoke subtopology 0-1", "reconciling (not_followed)"),
        (3, 2, "m has yet to revoke subtopology 0-1", "assigning (not_followed)"),
        (1, None, None, "assigning (not_followed)"),
        (3, 3, TOPOLOGY_NOT_READY, "not_ready (not_followed)"),
    ],
)
def test_a_streams_group_with_members_may_be_between_two_epochs(
    epoch: int, target: int | None, waits: str | None, text: str
) -> None:
    row = {"state": "not_followed", "members": 2, "protocol": "streams", "generation": target, "epoch": epoch}
    assert state_text(row | {"assignment_epoch": target, "waits": waits}) == text


@pytest.mark.parametrize(
    ("state", "protocol", "waits", "expected"),
    [
        *((state, None, None, True) for state in UNDER_WAY),
        ("stable", "consumer", None, False),
        ("not_followed", "streams", "m has yet to revoke subtopology 0-1", True),
        ("not_followed", "streams", TOPOLOGY_NOT_READY, False),
        ("not_followed", "streams", None, False),
        ("not_followed", "share", None, False),
    ],
)
def test_a_group_rebalances_where_its_coordinator_does(
    state: str, protocol: str | None, waits: str | None, expected: bool
) -> None:
    row = {"state": state, "members": 2, "protocol": protocol, "generation": 3, "epoch": 3, "assignment_epoch": 3}
    assert is_under_way(row | {"waits": waits}) == expected
    assert row.keys() | {"waits"} == set(STATE_COLUMNS) <= set(GROUPS.names)
