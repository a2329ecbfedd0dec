"""Two findings that are one story: the one names the other."""

from __future__ import annotations

from udfs.group.batch.finding_causes import with_causes
from udfs.group.batch.findings import Found
from udfs.model.finding_names import NOT_SUBSCRIBED, NamedQueue


def found(message: str, *reasons: str | None) -> Found:
    queues = tuple(NamedQueue("t", None, number, "a", reason) for number, reason in enumerate(reasons))  # type: ignore[arg-type]
    return Found(severity="warning", message=message, advice="", queues=queues)


def test_queues_of_a_member_without_the_subscription_follow_from_it() -> None:
    differ, unread = found("Differ."), found("Unread.", NOT_SUBSCRIBED)
    [_, (kind, named)] = with_causes([("subscriptions_differ", differ), ("unassigned_queues", unread)], {})
    assert kind == "unassigned_queues"
    assert named is not None
    assert (named.caused_by, named.message) == ("subscriptions_differ", "Unread. It follows from subscriptions_differ.")


def test_only_what_is_open_is_a_cause() -> None:
    unread = found("Unread.", NOT_SUBSCRIBED)
    assert with_causes(
        [("subscriptions_differ", None), ("unassigned_queues", unread)], {"subscriptions_differ": 1}
    ) == [
        ("subscriptions_differ", None),
        ("unassigned_queues", unread),
    ]
    [(_, named)] = with_causes([("unassigned_queues", unread)], {"subscriptions_differ": 1})
    assert named is not None
    assert named.caused_by == "subscriptions_differ"


def test_queues_without_a_would_be_owner_do_not_follow_from_subscriptions() -> None:
    [_, (_, named)] = with_causes([("subscriptions_differ", found("")), ("unassigned_queues", found("", None))], {})
    assert named is not None
    assert named.caused_by is None
