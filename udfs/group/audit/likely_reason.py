"""Core: why a reported assignment differs from the recomputed one, found by recomputing it with variations. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

from udfs.group.audit.audit_variants import Basis, Variant, held_by, leader_variants, member_variants, recomputed
from udfs.group.state.assignment_diff import Changed, changed_queues
from udfs.group.state.group import Owners
from udfs.group.state.state_machine import GroupKind
from udfs.group.state.view import GroupView
from udfs.model.audit_reasons import ANOTHER_STRATEGY, NOT_FOLLOWED, OWNER_HOLDS_NOTHING, UNEXPLAINED
from udfs.model.comparability import CUSTOM_STRATEGY
from udfs.model.first_few import first_few

# Groups with more queues are not recomputed with variations, as that may take seconds.
MAX_QUEUES_RECOMPUTED: Final = 20_000
_NAMED_AT_MOST: Final = 3


class LikelyReason(NamedTuple):
    """A reason and its evidence as a sentence."""

    name: str
    detail: str


def likely_reason(view: GroupView, basis: Basis, used: str | None, expected: Owners, reported: Owners) -> LikelyReason:
    """Return the likely reason why the reported assignment is not the expected one.

    Args:
        basis: The input from which the generation was computed. used: The qualified name of its strategy.
    """
    changed = [change for change in changed_queues(expected, reported) if not view.is_quiet(change[0][0])]
    is_for_itself = view.kind is GroupKind.CLIENT_ASSIGNED
    if is_for_itself and (silent := _silent_owners(changed, reported)):
        return LikelyReason(OWNER_HOLDS_NOTHING, f"{named(silent)} report no queue.")
    queues = sum(map(len, basis.topic_queues.values()))
    if queues > MAX_QUEUES_RECOMPUTED:
        return LikelyReason(UNEXPLAINED, f"With {queues} queues it was not computed again in other ways.")
    if recomputed(view, basis) != expected:
        return LikelyReason(UNEXPLAINED, "What it was computed from is no longer known.")
    variants = member_variants(view, basis, used) if is_for_itself else leader_variants(view, basis, used, reported)
    texts: dict[str, list[str]] = {}  # by reason: the variants that give the reported assignment
    for variant in variants:
        if any(texts.values()) and not texts.get(variant.reason):
            continue  # the first reason that explains the difference is the likely one
        of_reason = texts.setdefault(variant.reason, [])
        # Some members may hold another strategy's result by chance, so that strategy has to explain all of them.
        is_of_some = is_for_itself and variant.reason != ANOTHER_STRATEGY
        if _explains(view, variant, expected, reported, changed if is_of_some else None):
            of_reason.append(variant.text)
    for reason, found in texts.items():
        if found:
            what = f"{named(_members_of(changed))} hold" if is_for_itself else "The reported assignment is"
            return LikelyReason(reason, f"{what} exactly what results {', or '.join(found)}.")
    if is_for_itself and (lacking := _lacking_members(changed, expected, reported)):
        holds = "holds" if len(lacking) == 1 else "hold"
        detail = f"{named(lacking)} {holds} only a part of the expected queues; the others have no owner."
        return LikelyReason(NOT_FOLLOWED, detail)
    causes = ", ".join(sorted(texts))
    return LikelyReason(CUSTOM_STRATEGY, f"Computed again for other reasons ({causes}), it is never what is reported.")


def _explains(
    view: GroupView, variant: Variant, expected: Owners, reported: Owners, of_members: Sequence[Changed] | None
) -> bool:
    """Return whether a variant explains the report: all of it, or what each differing member holds."""
    owners = variant.compute()
    if owners is None or owners == expected:
        return False
    if of_members is None:
        return not any(not view.is_quiet(queue[0]) for queue, _, _ in changed_queues(owners, reported))
    members = _members_of(of_members)
    return held_by(owners, members) == held_by(reported, members)


def _members_of(changed: Iterable[Changed]) -> list[str]:
    """Return the members that hold a queue they should not hold, or lack one."""
    return sorted({member for _, expected, reported in changed for member in set(expected) ^ set(reported)})


def _silent_owners(changed: Sequence[Changed], reported: Owners) -> list[str]:
    """Return the expected owners if the only difference is that they report no queue at all."""
    if any(holders for _, _, holders in changed):
        return []
    owners = _members_of(changed)
    return owners if not any(held_by(reported, owners).values()) else []


def _lacking_members(changed: Sequence[Changed], expected: Owners, reported: Owners) -> list[str]:
    """Return the members that hold only a part of their expected queues, while nobody owns the rest."""
    owners = sorted({member for _, holders, now in changed if not now for member in holders})
    held, due = held_by(reported, owners), held_by(expected, owners)
    return [member for member in owners if held[member] < due[member]]


def named(members: Collection[str]) -> str:
    """Return members as a text, of many only the first."""
    return first_few(sorted(members), _NAMED_AT_MOST)
