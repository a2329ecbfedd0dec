"""Shell: audits of generations as sentences."""

from __future__ import annotations

from streaming.tables.schema import Row
from streaming.terminal.format import count, queue_name, time_text
from udfs.model.audit_reasons import SENTENCES

QUEUES_SHOWN = 20


def reason_text(name: str | None) -> str | None:
    """Return the text of a reason for people."""
    return None if name is None else SENTENCES.get(name, name)


def owners_text(members: list[str] | None) -> str:
    """Return the owners of a queue for people."""
    return " + ".join(members or []) or "nobody"


def strategy_text(group: Row) -> str:
    """Return the result of a group's audits for its strategy, as a sentence.

    Example:
        >>> strategy_text({"strategy_verdict": "proven", "verdict_generations": 2, "verdict_from": 0})
        'proven over 2 generations since 1970-01-01T00:00:00.000Z'
    """
    kind, number = group.get("strategy_verdict"), group.get("verdict_generations") or 0
    if kind is None:
        return "without a verdict yet"
    since = time_text(group["verdict_from"])
    if kind == "proven":
        return f"proven over {count(number, 'generation')} since {since}"
    why = reason_text(group.get("verdict_reason")) or "no reason was found"
    if kind == "contradicted":
        return f"contradicted by {count(number, 'generation')} since {since}: {why}"
    return f"not recomputable: {why}"


def story(audit: Row) -> list[str]:
    """Return an audit as lines: verdict, likely reason, evidence, the differing queues."""
    verdict, differing = audit["verdict"], audit["queues_differing"] or 0
    if verdict == "agrees":
        return ["Audit: the reported assignment is the recomputed one, queue by queue."]
    why = f"{audit['reason']} ({reason_text(audit['reason'])})"
    if verdict == "differs":
        lines = [
            f"Audit: {count(differing, 'queue')} of {audit['queues']} differ: {audit['missing']} missing,"
            f" {audit['duplicate']} duplicate, {audit['unexpected_owner']} with an unexpected owner.",
            f"  Likely reason: {why}.",
        ]
    else:
        lines = [f"Audit: not recomputable: {why}."]
    lines += [f"  Evidence: {audit['detail']}"] if audit["detail"] else []
    listed = audit["differing"] or []
    for queue in listed[:QUEUES_SHOWN]:
        name = queue_name(queue["topic"], queue["broker"], queue["queue_id"])
        expected = f"expected {owners_text(queue['expected'])}, " if verdict == "differs" else ""
        lines.append(f"  {name}: {queue['kind']}: {expected}reported {owners_text(queue['reported'])}")
    if differing > min(len(listed), QUEUES_SHOWN):
        lines.append(f"  … and {count(differing - min(len(listed), QUEUES_SHOWN), 'more queue')}")
    return lines
