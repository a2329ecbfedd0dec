"""Static members of Kafka in the model: they go on under a new id."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from tests.model.member import Member
from tests.model.times import Event

if TYPE_CHECKING:
    from tests.model.group import Group


def former_of(group: Group, instance_id: str | None, among: Collection[str]) -> str | None:
    """Return the members that had this instance id."""
    if instance_id is None or group.system != "kafka":
        return None
    found = [name for name in among if group.members[name].fields().get("instance_id") == instance_id]
    return found[0] if found else None


def replace(group: Group, at: int, former: str, name: str, lives_by: str, own: int | None = None) -> None:
    """Let a static member go on under a new id: its session and spans end, others begin, and nothing else."""
    old = group.members[former]
    fresh = Member(at, lives_by, dict(old.described))
    fresh.began_at = at if own is None else own
    fresh.not_before, fresh.is_new = old.not_before, old.is_new
    group.members = {name if member_id == former else member_id: member for member_id, member in group.members.items()}
    group.members[name] = fresh
    group.departed.pop(name, None)
    group.departed[former] = dict(old.described)
    group.replaced = (group.replaced | {former}) - {name}
    group.leave(former, old, at, "replaced")
    group.departed_at[former] = group.over_at[former] = at
    group.ended[former] = ("replaced", old.began_at)
    if former in group.beats and old.lives_by == "heartbeats":
        old.last = at
    group.renamed[name] = group.renamed.pop(former, former)
    if group.pending is None:
        group.rename_spans(at, former, name)
    else:
        group.pending.renames.append((at, former, name))
    for held in (group.held, group.reported):
        if held is not None and former in held:  # one of the new id may have departed, and still hold what it held
            held[name] = list(dict.fromkeys([*held.get(name, ()), *held.pop(former)]))
    if former in group.newest_report:
        group.newest_report[name] = group.newest_report.pop(former)
    group.reporters = {name if member_id == former else member_id for member_id in group.reporters}


def replace_absent(
    group: Group, at: int, reported: dict[str, Any], departed: Collection[str] = (), own: int | None = None
) -> None:
    """Find the static members that a snapshot shows under new ids; ``gone``: those that are known to have departed."""
    for name, info in reported.items():
        former = former_of(group, info.get("instance_id"), group.members.keys() - reported.keys() - set(departed))
        if name not in group.members and former is not None:
            replace(group, at, former, name, "snapshots", own)


def under_present_ids(group: Group, event: Event) -> Event:
    """Return a snapshot in which members that were replaced at its time or since have their new ids."""
    now: dict[str, str] = {}
    for name in group.replaced:
        present = former_of(group, group.departed[name].get("instance_id", (None,))[0], group.members)
        if present is not None and event["event_time"] <= group.departed_at[name]:
            now[name] = present

    def renamed(by_name: dict[str, Any]) -> dict[str, Any]:
        return {
            now.get(member_id, member_id): value
            for member_id, value in by_name.items()
            if now.get(member_id) not in by_name
        }

    shown = renamed({info["member_id"]: info for info in event["members"]})
    event = event | {"members": [info | {"member_id": name} for name, info in shown.items()]}
    if event.get("assignments") is not None:
        event["assignments"] = renamed(event["assignments"])
    return event | {"leader": now.get(event.get("leader"), event.get("leader"))}


def members_of(event: Event) -> dict[str, Any]:
    """Return the members that a snapshot shows, by their ids."""
    return {info["member_id"]: info for info in event["members"]}
