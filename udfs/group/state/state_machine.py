"""Core: the kinds and states of a group, and their transitions. No I/O.

`docs/groups.md` draws the tables; `tests/udfs/group/state/test_state_machine.py` compares them with what groups do.
"""

from __future__ import annotations

import enum
from typing import Final, NamedTuple

from udfs.group.state.group import Group
from udfs.model.systems import SYSTEMS, System


class GroupKind(enum.Enum):
    """The kind of a group: what counts its generations and what assigns its queues."""

    COUNTED = "counted"
    CLIENT_ASSIGNED = "client-assigned"
    REPORTED = "reported"
    NOT_FOLLOWED = "not followed"

    @property
    def meaning(self) -> str:
        """Return its description in the documentation."""
        return _KINDS[self]


_KINDS: Final = {
    GroupKind.COUNTED: "The monitor counts generations; all members take theirs over at once: groups of Kafka known by"
    " their members' own events, broadcasting, queues shared by message.",
    GroupKind.CLIENT_ASSIGNED: "The monitor counts generations; each member computes its queues and takes them over at"
    " a time of its own: clients of RocketMQ and MetaQ in clustering mode.",
    GroupKind.REPORTED: "A coordinator counts generations and assigns: groups of Kafka, by its snapshots or records.",
    GroupKind.NOT_FOLLOWED: "Listed and not recomputed.",
}


def kind_of(group: Group, system: System) -> GroupKind:
    """Return a group's kind."""
    if not group.followed:
        return GroupKind.NOT_FOLLOWED
    if group.generation is not None:
        return GroupKind.REPORTED
    if not SYSTEMS[system].coordinator_assigns and (group.mode or "clustering") == "clustering":
        return GroupKind.CLIENT_ASSIGNED
    return GroupKind.COUNTED


class GroupState(enum.Enum):
    """The state of decisions about a group."""

    NEW = "new"
    PREPARING = "preparing"
    STABLE = "stable"
    AWAITING_TOPICS = "awaiting topics"
    FAILED = "failed"
    EMPTY = "empty"
    NOT_FOLLOWED = "not followed"

    @property
    def meaning(self) -> str:
        """Return its description in the documentation."""
        return _STATES[self]


_STATES: Final = {
    GroupState.NEW: "Nothing was decided of it so far, or since it was deleted or forgotten.",
    GroupState.PREPARING: "Changes are pending: one rebalance takes them in when the settling time is over.",
    GroupState.STABLE: "The last rebalance was completed.",
    GroupState.AWAITING_TOPICS: "A reported generation is current; it is computed once all its topics are known.",
    GroupState.FAILED: "The strategy of the last rebalance failed: members keep what they had.",
    GroupState.EMPTY: "It has no members.",
    GroupState.NOT_FOLLOWED: "Its kind is not followed.",
}


def state_of(group: Group) -> GroupState:
    """Return a group's state."""
    if not group.followed:
        return GroupState.NOT_FOLLOWED
    if group.pending is not None:
        return GroupState.PREPARING
    if group.awaited is not None:
        return GroupState.AWAITING_TOPICS
    if not group.exists and group.row is None:
        return GroupState.NEW
    if not group.members:
        return GroupState.EMPTY
    if group.row is not None and group.row.state == "failed":
        return GroupState.FAILED
    return GroupState.STABLE


class Step(enum.Enum):
    """An event that leads from one state or kind of a group to another."""

    CHANGE = "a member, a topic or a setting changes, and the monitor counts generations"
    CANCEL = "all changes of one time cancel out"
    SETTLE = "the settling time of pending changes is over"
    GENERATION = "a coordinator reports a generation"
    TOPICS = "metadata shows the last topic of the generation"
    COMMIT = "a group commits of which nothing else is known"
    POLL = "a poll shows the group, without members"
    DELETE = "the group is deleted"
    FORGET = "the group has been empty for `forget_after`, and has not committed"
    NOT_FOLLOWED = "a snapshot shows a kind that is not followed"
    RESTORE = "an export is taken in"


class Transition(NamedTuple):
    """The states before and after a step; it may also leave a state unchanged."""

    step: Step
    before: frozenset[GroupState]
    after: frozenset[GroupState]


class KindTransition(NamedTuple):
    """The kinds of group before and after a step."""

    step: Step
    before: frozenset[GroupKind]
    after: frozenset[GroupKind]


def _transition(step: Step, before: frozenset[GroupState], *after: GroupState) -> Transition:
    return Transition(step, before, frozenset(after))


_S = GroupState
_ANY: Final = frozenset(GroupState)
TRANSITIONS: Final = (
    _transition(Step.CHANGE, _ANY - {_S.PREPARING, _S.AWAITING_TOPICS}, _S.PREPARING),
    _transition(Step.CANCEL, frozenset({_S.PREPARING}), _S.NEW, _S.STABLE, _S.FAILED, _S.EMPTY),
    _transition(Step.SETTLE, frozenset({_S.PREPARING}), _S.STABLE, _S.FAILED, _S.EMPTY),
    _transition(Step.GENERATION, _ANY, _S.STABLE, _S.AWAITING_TOPICS, _S.FAILED, _S.EMPTY),
    _transition(Step.TOPICS, frozenset({_S.AWAITING_TOPICS}), _S.STABLE),
    _transition(Step.COMMIT, frozenset({_S.NEW}), _S.EMPTY),
    _transition(Step.POLL, frozenset({_S.NEW, _S.NOT_FOLLOWED}), _S.EMPTY),
    _transition(Step.DELETE, _ANY, _S.NEW),
    _transition(Step.FORGET, frozenset({_S.EMPTY}), _S.NEW),
    _transition(Step.NOT_FOLLOWED, _ANY, _S.NOT_FOLLOWED),
    _transition(Step.RESTORE, frozenset({_S.NEW}), _S.STABLE, _S.EMPTY, _S.NOT_FOLLOWED),
)

_K = GroupKind
_COUNTED_KINDS: Final = frozenset({_K.COUNTED, _K.CLIENT_ASSIGNED})
KIND_TRANSITIONS: Final = (
    KindTransition(Step.CHANGE, _COUNTED_KINDS | {_K.NOT_FOLLOWED}, _COUNTED_KINDS),
    KindTransition(Step.POLL, frozenset({_K.NOT_FOLLOWED}), _COUNTED_KINDS),
    KindTransition(Step.GENERATION, frozenset(GroupKind), frozenset({_K.REPORTED})),
    KindTransition(Step.DELETE, frozenset({_K.REPORTED, _K.NOT_FOLLOWED, _K.COUNTED}), _COUNTED_KINDS),
    KindTransition(Step.FORGET, frozenset({_K.REPORTED, _K.COUNTED}), _COUNTED_KINDS),
    KindTransition(Step.NOT_FOLLOWED, frozenset(GroupKind), frozenset({_K.NOT_FOLLOWED})),
    KindTransition(Step.RESTORE, _COUNTED_KINDS, frozenset({_K.REPORTED, _K.NOT_FOLLOWED})),
)
