"""Shell: the causes of a rebalance as a short text. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from streaming.terminal.member_names import client_of

# Text of each kind of trigger in a sentence about one member or topic, and its colour.
CAUSE_TEXTS = {
    "group_created": ("group created", "cyan"),
    "session_expired": ("{member} expired", "red"),
    "member_left": ("{member} left", "yellow"),
    "member_gone": ("{member} departed", "yellow"),
    "member_joined": ("{member} joined", "green"),
    "subscription_changed": ("{member} changed subscription", "blue"),
    "strategy_changed": ("strategy changed", "blue"),
    "settings_changed": ("settings changed", "blue"),
    "queue_count_changed": ("queues of {topic} changed", "magenta"),
    "topic_learned": ("{topic} learned late", "magenta"),
    "cooperative_follow_up": ("cooperative follow-up", "dim"),
    "coordinator_changed": ("coordinator changed", "red"),
    "late_evidence": ("late evidence", "magenta"),
    "unexplained": ("no cause observed", "red"),
}
# Texts of a changed subscription that names its topic: a pattern matches it.
_MATCHED, _MATCHED_BY_SEVERAL = "{topic} matched the pattern of {member}", "{topic} matched the patterns of {count}"
# A topic whose numbers of queues are known.
_COUNTS = re.compile(r"(\d+) -> (\d+)")
SEVERAL = {
    "session_expired": "{count} expired",
    "member_left": "{count} left",
    "member_gone": "{count} departed",
    "member_joined": "{count} joined",
    "subscription_changed": "{count} changed subscriptions",
    "queue_count_changed": "queues of {count} topics changed",
    "topic_learned": "{count} topics learned late",
}


def describe_cause(triggers: Iterable[Mapping[str, Any]], group_id: str = "", id_width: int = 200) -> str:
    """Return a short text of a rebalance's causes, in the order of the triggers.

    Args:
        group_id, id_width: Ids longer than this lose what they share with their group, then their middle.

    Example:
        >>> describe_cause([{"kind": "member_left", "member_id": "a"}, {"kind": "member_joined", "member_id": "b"}])
        'a left, b joined'
        >>> describe_cause([{"kind": "queue_count_changed", "topic": "orders", "detail": "6 -> 8"}])
        'orders grew from 6 to 8 queues'
        >>> describe_cause([{"kind": "member_joined", "member_id": name} for name in "abc"])
        '3 joined'
        >>> describe_cause([{"kind": "member_left", "member_id": "consumer-audit-1-0123456789abcdef"}], "audit", 12)
        '1-012…9abcdef left'
    """
    kinds: dict[str, list[Mapping[str, Any]]] = {}
    for trigger in triggers:
        kinds.setdefault(str(trigger["kind"]), []).append(trigger)
    parts = []
    for kind, several in kinds.items():
        topics = {trigger.get("topic") for trigger in several}
        is_match = kind == "subscription_changed" and len(topics) == 1 and None not in topics
        if len(several) > 1 and is_match:
            parts.append(_MATCHED_BY_SEVERAL.format(count=len(several), topic=several[0]["topic"]))
        elif len(several) > 1 and kind in SEVERAL:
            parts.append(SEVERAL[kind].format(count=len(several)))
        else:
            text, _ = CAUSE_TEXTS.get(kind, (kind.replace("_", " "), ""))
            text = _MATCHED if is_match else text
            if kind == "queue_count_changed" and (counts := _COUNTS.match(several[0].get("detail") or "")):
                before, after = map(int, counts.groups())
                text = f"{{topic}} {'grew' if after > before else 'shrank'} from {before} to {after} queues"
            member = _short(several[0].get("member_id") or "a member", group_id, id_width)
            parts.append(text.format(member=member, topic=several[0].get("topic")))
    return ", ".join(parts)


def _short(member_id: str, group_id: str, width: int) -> str:
    member_id = client_of(member_id)
    if len(member_id) > width:
        member_id = member_id.removeprefix("consumer-").removeprefix(group_id).lstrip("-_") or member_id
    if len(member_id) > width + 1:
        return f"{member_id[: width // 2 - 1]}…{member_id[-(width // 2 + 1) :]}"
    return member_id
