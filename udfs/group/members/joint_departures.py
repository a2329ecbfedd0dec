"""Core: conclusions from several departures: a lost host, or clients restarted one after the other. No I/O.

=================  ====================================================================================================
part of            its evidence, of one group
=================  ====================================================================================================
``host_lost``      all members that a host had, two at least, expired within a session timeout; meanwhile no member of
                   another host did, and at least one of those stayed
``rolling_restart``  a client left and came back under another member id after another one had done so
=================  ====================================================================================================

One member alone on its host is no evidence, nor is a group whose members are all on one host. When a
process with several members crashes, it looks like its host: the sentence says so. ``clients`` defines a client; one
that several members share does not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from udfs.group.batch.finding_texts import named
from udfs.group.state.group import Departed, Member
from udfs.group.state.view import GroupView
from udfs.model.clients import host_of
from udfs.model.journal import Trigger

# A client that returns later than this, or leaves this long after the previous one returned, is not part of it.
_RESTART_MS = 600_000
_TOGETHER_MS = 50


def with_joint_departures(view: GroupView, triggers: Sequence[Trigger]) -> list[Trigger]:
    """Return causes; those that are part of a lost host or a rolling restart name it, as data and in words.

    Args:
        triggers: The causes of a rebalance whose sessions have already ended and begun.
    """
    found: dict[str, tuple[str, str]] = {}
    expired = [
        trigger.member_id for trigger in triggers if trigger.kind == "session_expired" and trigger.member_id is not None
    ]
    if expired:
        found |= _of_lost_hosts(view, expired)
    joined = [
        trigger.member_id for trigger in triggers if trigger.kind == "member_joined" and trigger.member_id is not None
    ]
    if joined:
        found |= _of_restarts(view, joined)
    return [
        _with(trigger, *found[trigger.member_id]) if trigger.member_id in found else trigger for trigger in triggers
    ]


def _with(trigger: Trigger, part_of: str, text: str) -> Trigger:
    if trigger.kind not in ("session_expired", "member_joined"):
        return trigger
    detail = text if trigger.detail is None else f"{trigger.detail}; {text}"
    return msgspec.structs.replace(trigger, part_of=part_of, detail=detail)


# ---- hosts


def _of_lost_hosts(view: GroupView, expired: Sequence[str]) -> dict[str, tuple[str, str]]:
    group, found = view.group, dict[str, tuple[str, str]]()
    if any(host_of(member.host) is None for member in group.members.values()):
        return found  # it may be on any host
    is_whole = len(group.departed) < view.config.max_departed_members
    numbers = Counter(host_of(departed.member.host) for departed in group.departed.values())
    by_host: dict[str, list[str]] = {}
    for member_id in expired:
        departed = group.departed.get(member_id)
        host = None if departed is None else host_of(departed.member.host)
        if host is not None and numbers[host] > 1:
            by_host.setdefault(host, []).append(member_id)
    for host, member_ids in by_host.items():
        text = _lost_host(
            view, host, max(group.departed[departed_id].left_at for departed_id in member_ids), is_whole=is_whole
        )
        if text is not None:
            found |= dict.fromkeys(member_ids, ("host_lost", text))
    return found


def _lost_host(view: GroupView, host: str, until: int, *, is_whole: bool) -> str | None:
    """Return the note on a lost host if the last of its members expired at that time; None if the host is not lost.

    Args:
        is_whole: Whether all departed members are remembered.
    """
    group = view.group
    span = max(
        view.timeout_of(departed.member)
        for departed in group.departed.values()
        if host_of(departed.member.host) == host
    )
    recent = [
        departed
        for departed in group.departed.values()
        if departed.left_reason != "replaced" and departed.left_at > until - span
    ]
    lost = [departed for departed in recent if host_of(departed.member.host) == host]
    first = min(departed.left_at for departed in lost)
    were_together = len(lost) > 1 and all(
        departed.left_reason == "expired" and departed.member.joined_at < first for departed in lost
    )
    is_back = any(host_of(member.host) == host for member in group.members.values())
    # Members of other hosts that left in order do not disprove it.
    others = any(host_of(departed.member.host) != host and departed.left_reason != "left" for departed in recent)
    went_on = any(member.joined_at < first for member in group.members.values())
    is_whole |= min(departed.left_at for departed in group.departed.values()) <= until - span
    if not is_whole or not were_together or is_back or others or not went_on:
        return None
    when = f"within {(until - first) / 1_000:.1f} s" if until - first >= _TOGETHER_MS else "together"
    names = named(sorted(_shown(departed.member) for departed in lost))
    return (
        f"all {len(lost)} members of host {host} ({names}) expired {when} while those of other hosts went on: the host"
        " was lost, or what ran them all"
    )


def _shown(member: Member) -> str:
    return member.instance_id or member.client_id or member.member_id


# ---- restarts


def _of_restarts(view: GroupView, joined: Iterable[str]) -> dict[str, tuple[str, str]]:
    restarts = _restarts(view)
    found: dict[str, tuple[str, str]] = {}
    for member_id in joined:
        chain: list[tuple[Departed, Member]] = []
        for former, member in sorted(restarts, key=lambda restart: restart[1].joined_at, reverse=True):
            if not chain and member.member_id != member_id:
                continue
            before = chain[-1][0].left_at if chain else None
            if before is None or before - _RESTART_MS <= member.joined_at < before:
                chain.append((former, member))
        if len(chain) > 1:
            span = (chain[0][1].joined_at - chain[-1][0].left_at) / 1_000
            names = named([_shown(member) for _, member in reversed(chain)])
            text = f"a rolling restart: {len(chain)} clients left and came back one after the other within {span:.1f} s"
            found[member_id] = ("rolling_restart", f"{text} ({names})")
    return found


def _restarts(view: GroupView) -> list[tuple[Departed, Member]]:
    """Return the members whose client has left and returned, each with its previous session."""
    group = view.group
    present: dict[str, list[Member]] = {}
    for member in group.members.values():
        present.setdefault(view.client_of(member), []).append(member)
    former: dict[str, Departed] = {}
    for departed in group.departed.values():
        client = view.client_of(departed.member)
        before = former.get(client)
        if before is None or before.left_at < departed.left_at:
            former[client] = departed
    return [
        (former[client], returned)
        for client, (returned, *others) in present.items()
        if not others
        and client in former
        and former[client].left_reason == "left"
        and former[client].member.member_id != returned.member_id
        and former[client].left_at <= returned.joined_at <= former[client].left_at + _RESTART_MS
    ]
