"""Dashboard: words for people in place of the codes of tables, by one table; the code itself is in the title."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup, escape

from streaming.terminal.escape import printable

# A code that is not here is shown with spaces.
WORDS: Mapping[str, str] = {
    # How a session ended, and causes of rebalances.
    "left": "left by itself",
    "expired": "expired: no heartbeat",
    "gone": "departed, how is not known",
    "absent_from_snapshot": "missing from a poll",
    "replaced": "replaced by its next start",
    "member_left": "member left",
    "member_gone": "member departed, how is not known",
    "session_expired": "session expired",
    "queue_count_changed": "queues of a topic changed",
    "topic_learned": "topic learned late",
    "cooperative_follow_up": "second half of a cooperative move",
    "unexplained": "no cause observed",
    # Findings.
    "brokers_disagree": "brokers disagree",
    "clocks_ahead": "clocks are ahead",
    "commits_went_back": "commits went back",
    "duplicate_ids": "duplicate client ids",
    "duplicate_instance": "duplicate instance id",
    "duplicate_unreachable": "duplicate that nobody reaches",
    "events_late": "events came late",
    "events_lost": "events were lost",
    "expected_differs": "reported and recomputed assignment differ",
    "flapping": "rebalances too often",
    "generations_missed": "generations were missed",
    "group_stalled": "group stands still",
    "job_silent": "job is silent",
    "job_stopped": "job was stopped",
    "member_stalled": "member stands still",
    "members_unseen": "members that nobody lists",
    "messages_lost": "messages were lost unread",
    "pods_unknown": "pods are not known",
    "queue_stalled": "queue stands still",
    "queues_unread": "queues that nobody reads",
    "rebalance_stuck": "rebalance does not end",
    "retention_risk": "about to lose unread messages",
    "source_silent": "cluster is silent",
    "strategies_differ": "members use different strategies",
    "strategy_failed": "strategy failed",
    "subscriptions_differ": "members have different subscriptions",
    "subscriptions_flap": "subscriptions change back and forth",
    "tables_unreadable": "tables cannot be read",
    "unassigned_queues": "queues without an owner",
    # Episodes.
    "periodic": "at a fixed period",
    "rolling_deploy": "rolling deploy",
    "same_client_again": "same client again and again",
    "topic_discovered": "topic found by members in turn",
    # Audits.
    "differs": "differs",
    "unexpected_owner": "unexpected owner",
    "not_recomputable": "cannot be recomputed",
    # States.
    "not_followed": "not followed",
}


def word(code: str | None) -> Markup:
    """Return a code of the tables as words, with the code as their title."""
    if not code:
        return Markup('<span class="none">–</span>')
    text = WORDS.get(code, code.replace("_", " "))
    return Markup('<span class="word" title="{}">{}</span>').format(
        printable(code[:100]), escape(printable(text[:100]))
    )
