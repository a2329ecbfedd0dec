"""Core: two processes with the same ``group.instance.id`` replace each other. No I/O.

The coordinator keeps the process that joined last and fences the other one at its next request (KIP-345). Records show
only that the member id was replaced, as after a restart; a broker's log names the fenced member.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from udfs.group.batch.findings import Found, of_members
from udfs.group.state.view import GroupView
from udfs.model.finding_names import NamedMember

DUPLICATE_INSTANCE = "duplicate_instance"
# A supervisor that restarts a fenced process does so within seconds or a few minutes.
CONTENDED_WITHIN_MS = 600_000
# A second process takes the place, the first takes it back, and the second takes it again.
CONTENDED_REPLACEMENTS = 3
_HOSTS_NAMED = 3


def fenced_found(view: GroupView, member_id: str, reason: str | None, event_id: str, at: int) -> Found:
    """Return the finding for a member that stayed alive after another process had taken its instance id."""
    departed = view.group.departed.get(member_id)
    instance_id = None if departed is None else departed.member.instance_id
    name = f"instance {instance_id}" if instance_id else f"member {member_id}"
    message = f"Two processes use one group.instance.id: {name} was fenced" + (f" ({reason})." if reason else ".")
    named = [] if departed is None else [view.named(departed.member, "fenced")]
    return _duplicate(message, named, event_id, at)


def contended_found(view: GroupView, member_ids: Iterable[str], at: int) -> Iterator[Found]:
    """Yield the finding for each instance id that members take from each other, and one of these has just taken."""
    for member_id in member_ids:
        present = view.group.members[member_id]
        instance_id = present.instance_id
        former = [
            departed.member
            for departed in view.group.departed.values()
            if departed.left_reason == "replaced"
            and departed.member.instance_id == instance_id
            and departed.left_at > at - CONTENDED_WITHIN_MS
        ]
        named = [view.named(member, member.host) for member in (*former, present)]
        hosts = sorted({member.detail or "unknown" for member in named})
        if len(former) < CONTENDED_REPLACEMENTS:
            continue
        message = (
            f"Instance {instance_id} came back under a new member id {len(former)} times within ten minutes, from"
            f" {', '.join(hosts[:_HOSTS_NAMED])}: two processes may be taking it from each other."
        )
        yield _duplicate(message, named, None, at)


def _duplicate(message: str, members: Sequence[NamedMember], event_id: str | None, at: int) -> Found:
    return Found(
        severity="warning",
        message=message,
        advice="Give each process a group.instance.id of its own; stop the second one.",
        evidence=() if event_id is None else (event_id,),
        closes_at=at + CONTENDED_WITHIN_MS,
        **of_members(members),
    )
