"""Shell: one rebalance as a report: its causes, the moved queues, its duration, the clients' agreement."""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow.compute as pc

from streaming.tables.schema import Row
from streaming.tables.shared_columns import COST_NAMES
from streaming.terminal.format import between, count, queue_name, span_of_time, time_text
from streaming.views import audit_texts, phase_texts, rebalance_episodes, related_annotations
from streaming.views.cause_pods import with_cause_pods
from streaming.views.client_rebalances import recent_texts
from streaming.views.members import DEPARTURES
from streaming.views.reader import Reader, time_scalar
from streaming.views.rebalance_costs import repeated_text, waiting_text
from streaming.views.rebalance_spans import began_ms, is_after, is_before, is_new, spans_of
from streaming.views.rebalances import one_rebalance
from streaming.views.related_annotations import DEFAULT_SPANS, AnnotationSpans
from streaming.views.related_findings import lines, related_findings, silence_text
from streaming.views.siblings import HostSessions, Siblings, host_sessions, siblings_of
from udfs.model.comparability import GROWTH_NOT_DUE, NOT_REPORTED, SENTENCES
from udfs.model.systems import SYSTEMS

MOVES_SHOWN = 40

_HAPPENED = {
    "group_created": "the group was observed for the first time",
    "session_expired": "{member} sent no heartbeat for longer than its session timeout",
    "member_left": "{member} left the group",
    "member_gone": "{member} is no longer a member; the source does not report whether it left or expired",
    "member_joined": "{member} joined",
    "subscription_changed": "{member} changed its subscription",
    "strategy_changed": "the strategy changed",
    "settings_changed": "the settings of the group changed",
    "queue_count_changed": "the queues of topic {topic} changed",
    "topic_learned": "the group learned late of topic {topic}, to which it subscribed before",
    "cooperative_follow_up": "the second generation of a cooperative move",
    "coordinator_changed": "the coordinator lost its state of the group",
    "late_evidence": "evidence arrived late",
    "unexplained": "the source reports a new generation, and no cause was observed",
}
# The same texts if the cause names a topic, or a member.
_BY_TOPIC = {"subscription_changed": "topic {topic} matches the pattern of {member}"}
_BY_MEMBER = {
    "strategy_changed": "{member} reports another strategy",
    "settings_changed": "{member} changed the settings of its strategy",
}


class Move(NamedTuple):
    """One queue whose owners changed."""

    topic: str
    broker: str | None
    queue_id: int
    before: list[str]
    after: list[str]
    repeated_messages: int | None = None
    repeated_estimated_messages: int | None = None
    waiting_messages: int | None = None
    waiting_estimated_messages: int | None = None
    outage_min_ms: int | None = None
    outage_max_ms: int | None = None


def explain(reader: Reader, prefix: str, near: AnnotationSpans = DEFAULT_SPANS) -> dict[str, Any]:
    """Return the rebalance, the sessions of the members that caused it, and each queue whose owners changed.

    Args:
        near: Which annotations are near.

    Raises:
        NotFoundError, AmbiguousError: None matches, or several.
    """
    rebalance = one_rebalance(reader, prefix)
    episode = rebalance_episodes.episodes_of(reader, [rebalance]).get(rebalance["rebalance_id"])
    if episode is not None:
        rebalance = rebalance | {"episode_id": episode["episode_id"]}
    where = {"cluster": rebalance["cluster"], "group_id": rebalance["group_id"]}
    spans = spans_of(reader, rebalance)
    found, recent = related_findings(reader, rebalance), recent_texts(reader, rebalance)
    return {
        "rebalance": rebalance,
        "causes": [
            cause | {"silence": silence_text(cause, found), "recent_text": recent.get(cause["client"])}
            for cause in _causes(reader, rebalance, where)
        ],
        "findings": found,
        "episode": episode,
        "annotations": related_annotations.of_rebalance(reader, rebalance, near),
        "moves": {
            origin: [move._asdict() for move in _moves(spans, rebalance, origin)]
            for origin in ("computed", "reported")
            if any(span["origin"] == origin for span in spans)
        },
        "spans_dropped_before": _spans_dropped_before(reader, rebalance),
        "taken_over": _taken_over(reader, rebalance, where),
        "phases": [phase._asdict() for phase in phase_texts.phases(rebalance)],
        "parts": [part._asdict() for part in phase_texts.parts(reader, rebalance)],
        "audit": next(iter(reader.rows("audits", where=where | {"rebalance_id": rebalance["rebalance_id"]})), None),
    }


def _spans_dropped_before(reader: Reader, rebalance: Row) -> int | None:
    """Return the time before which spans were dropped, if some of this rebalance may be among them."""
    dropped = reader.dropped_before("assignments").get(rebalance["cluster"])
    return dropped if dropped is not None and began_ms(rebalance, "reported") < dropped else None


def _taken_over(reader: Reader, rebalance: Row, where: dict[str, str]) -> list[Row]:
    """Return the queues that members took over by themselves, and how long each had no owner before."""
    began = time_scalar(began_ms(rebalance, "reported"))
    wanted = {**where, "rebalance_id": rebalance["rebalance_id"], "origin": "reported"}
    columns = ("topic", "broker", "queue_id", "member_id", "valid_from", "outage_min_ms", "outage_max_ms")
    found = [
        {name: span.get(name) for name in columns}
        for span in reader.rows(
            "assignments", where=wanted, keep=lambda rows: pc.greater_equal(rows["valid_from"], began)
        )
        if span.get("outage_max_ms") is not None
    ]
    return sorted(found, key=lambda span: (span["topic"], span["broker"] or "", span["queue_id"], span["valid_from"]))


def _causes(reader: Reader, rebalance: Row, where: dict[str, str]) -> list[Row]:
    at = time_scalar(rebalance["event_time"])
    sessions = reader.rows("members", where=where, keep=lambda rows: pc.less_equal(rows["joined_at"], at))
    sessions.sort(key=lambda session: session["joined_at"])
    last = {session["member_id"]: session for session in sessions}
    described = ("client_id", "host", "instance_id", "last_heartbeat_at", "session_timeout_ms")
    causes = []
    for trigger in rebalance["triggers"] or []:
        session = last.get(trigger["member_id"], {})
        cause = {**trigger, **{name: session.get(name, trigger.get(name)) for name in described}}
        if trigger["kind"] in DEPARTURES:
            of_it = (rebalance["cluster"], rebalance["group_id"], rebalance["event_time"])
            found = siblings_of(reader, session, *of_it)
            cause["siblings"] = None if found is None else found._asdict()
            on_host = None if trigger["kind"] == "member_left" else host_sessions(reader, session, *of_it)
            is_more = on_host is not None and on_host.total > (0 if found is None else found.total)
            cause["host_sessions"] = on_host._asdict() if on_host is not None and is_more else None
        causes.append(cause)
    return with_cause_pods(reader, causes, last, rebalance["event_time"])


def _moves(spans: list[Row], rebalance: Row, origin: str) -> list[Move]:
    before: dict[tuple[Any, ...], list[Row]] = {}
    after: dict[tuple[Any, ...], list[Row]] = {}
    for span in spans:
        if span["origin"] != origin:
            continue
        queue = (span["topic"], span["broker"], span["queue_id"])
        if is_before(span, rebalance):
            before.setdefault(queue, []).append(span)
        if is_after(span, rebalance):
            after.setdefault(queue, []).append(span)
    queues = sorted(before.keys() | after.keys(), key=lambda queue: (queue[0], queue[1] or "", queue[2]))
    is_static = SYSTEMS[rebalance["system"]].has_static_members
    return [
        _move(queue, before.get(queue, []), after.get(queue, []), rebalance)
        for queue in queues
        if _owners_of(is_static, before.get(queue, [])) != _owners_of(is_static, after.get(queue, []))
    ]


def _move(queue: tuple[Any, ...], before: list[Row], after: list[Row], rebalance: Row) -> Move:
    # The cost of a new owner belongs to the queue, and each span of the queue has it.
    new = [span for span in after if is_new(span, rebalance)]
    names = Move._fields[Move._fields.index("after") + 1 :]
    costs = [next((span[name] for span in new if span.get(name) is not None), None) for name in names]
    return Move(*queue, *([span["member_id"] for span in spans] for spans in (before, after)), *costs)


def _owners_of(is_static: bool, spans: list[Row]) -> list[str]:
    """Return the owners of a queue; a static member counts as the same under any id."""
    return sorted((is_static and span.get("instance_id")) or span["member_id"] for span in spans)


# -- as text ------------------------------------------------------------------------------------------------------


def story(reported: dict[str, Any]) -> str:
    """Return the result of ``explain`` as text."""
    row = reported["rebalance"]
    how_long = [*_how_long(row), *_phases(row), *_queues_unread(row, reported["taken_over"])]
    return "\n".join(
        [
            *_what(row),
            *_logical(reported),
            "",
            *_why(reported),
            "",
            *_moved(reported),
            "",
            *how_long,
            "",
            _messages(row),
            "",
            *_agreement(reported),
            *rebalance_episodes.lines(reported),
            *related_annotations.lines(reported),
            *lines(reported),
        ]
    )


def _what(row: Row) -> list[str]:
    how = "completed" if row["status"] == "completed" else f"failed: {row['error']}"
    lines = [
        f"Rebalance {row['rebalance_id']}",
        f"Group {row['group_id']} of {row['system']} cluster {row['cluster']} rebalanced"
        f" at {time_text(row['event_time'])}: generation {row['generation']} ({row['generation_source']}), {how}.",
        f"Members: {row['members_before']} before, {row['members_after']} after."
        f" Queues: {row['queues_before']} before, {row['queues_after']} after."
        + (" The group is empty now." if row["members_after"] == 0 else ""),
    ]
    if row["generations_missed"]:
        lines.append(f"Not observed before it: {count(row['generations_missed'], 'generation')}.")
    if row["status"] == "completed" and row["error"]:
        lines.append(f"Note: {row['error']}.")
    return lines


def _why(reported: dict[str, Any]) -> list[str]:
    lines = [f"Why: {reported['rebalance']['trigger']}"]
    for cause in reported["causes"]:
        happened = _happened(cause, reported["rebalance"])
        text = happened.format(member=_member(cause), topic=cause["topic"] or "of the group")
        if cause["kind"] == "session_expired" and cause["last_heartbeat_at"] is not None:
            text += f" (last heartbeat {time_text(cause['last_heartbeat_at'])})"
        if cause["detail"]:
            text += f": {cause['detail']}"
        if found := cause.get("siblings"):
            text += f"; {Siblings(**found).text}"
        if found := cause.get("host_sessions"):
            text += f"; {HostSessions(**found).text}"
        text += "".join(f"; {more}" for name in ("pod_text", "silence", "recent_text") if (more := cause.get(name)))
        lines.append(f"  {cause['kind']}: {text}" + (f"  [event {cause['event_id']}]" if cause["event_id"] else ""))
    return lines


def _happened(cause: Row, row: Row) -> str:
    kind: str = cause["kind"]
    if kind == "group_created" and row["generation_source"] == "counted" and row["generation"] > 1:
        return "the group exists again; it had been deleted, or empty for so long that its state was dropped"
    if kind in _BY_MEMBER and cause["member_id"]:
        return _BY_MEMBER[kind]
    if kind in _BY_TOPIC and cause["topic"]:
        return _BY_TOPIC[kind]
    return _HAPPENED.get(kind, kind)


def _member(cause: Row) -> str:
    name = cause["member_id"] or "a member"
    about = [
        f"{label} {cause[field]}"
        for label, field in (("client", "client_id"), ("host", "host"), ("instance", "instance_id"))
        if cause[field] and cause[field] != name
    ]
    return f"{name} ({', '.join(about)})" if about else name


def _moved(reported: dict[str, Any]) -> list[str]:
    row, moves = reported["rebalance"], reported["moves"]
    lines = [
        f"What moved: {row['queues_moved']} moved, {row['queues_assigned']} assigned, {row['queues_revoked']} revoked,"
        f" {row['queues_kept']} kept; {_allocation(row)}."
    ]
    if (dropped := reported["spans_dropped_before"]) is not None:
        lines.append(f"  Not all is known: spans that ended before {time_text(dropped)} were dropped.")
    for origin, of_origin in moves.items():
        if len(moves) > 1:
            lines.append(f"  {origin}:")
        for move in of_origin[:MOVES_SHOWN]:
            queue = queue_name(move["topic"], move["broker"], move["queue_id"])
            lines.append(f"  {queue}: {_owners(move['before'])} → {_owners(move['after'])}")
        if len(of_origin) > MOVES_SHOWN:
            lines.append(f"  … and {count(len(of_origin) - MOVES_SHOWN, 'more queue')}; --json lists them all")
        if not of_origin and dropped is None:
            lines.append("  no queue changed its owner")
    lines.append(
        f"Afterwards: {count(row['idle_members'], 'idle member')},"
        f" {count(row['unassigned_queues'], 'unassigned queue')}, spread {row['spread']}."
    )
    return lines


def _allocation(row: Row) -> str:
    if not row["members_after"]:
        return "there is no member to assign queues to"
    if row["mode"] == "broadcasting":
        return "every member consumes every queue (broadcasting)"
    if row["mode"] == "message":
        return "members share queues message by message (message)"
    by = f"by {row['strategy'] or 'an unknown strategy'}"
    by += f" of {row['library']}" if row.get("library") else ""
    return by + (f", computed by {row['leader']}" if row["leader"] else "") + f" ({row['mode']})"


def _owners(names: list[str]) -> str:
    return " + ".join(names) or "no owner"


def _how_long(row: Row) -> list[str]:
    """Return how long nobody read queues and, separately, how long the coordinator took."""
    stopped, unknown = row["outage_queues"] or 0, row["outage_unknown_queues"] or 0
    if not stopped:
        lines = ["Outage: no queue was left unread." if row["outage_max_ms"] == 0 else "Outage: not known."]
    elif not row["queue_outage_min_ms"] and row["queue_outage_max_ms"] is None:
        lines = [f"Outage: {count(stopped, 'queue')} stopped, for how long is not known."]
    else:
        longest = between(row["queue_outage_min_ms"], row["queue_outage_max_ms"])
        total = between(row["outage_min_ms"], row["outage_max_ms"])
        text = f"Outage: nobody read {count(stopped, 'queue')} for {longest} (the longest), {total} added up"
        more = f"; for {count(unknown, 'queue')} the end is unknown" if unknown else ""
        basis = f" ({row['outage_evidence']})" if row["outage_evidence"] else ""
        lines = [f"{text}{more}{basis}."]
    whole = row["pause_ms"] if row["pause_ms"] is not None else row["pause_estimated_ms"]
    if whole is not None:
        about = "" if row["pause_ms"] is not None else "about "
        lines.append(f"  The rebalance itself took {about}{span_of_time(whole)}.")
    return lines


def _phases(row: Row) -> list[str]:
    spans, times = phase_texts.phases_text(row), phase_texts.times_text(row)
    return ([f"  Phases: {spans}"] if spans else []) + ([f"  {times}"] if times else [])


def _logical(reported: dict[str, Any]) -> list[str]:
    """Return which part of a logical rebalance this is, and the other parts."""
    row = reported["rebalance"]
    found = [phase_texts.Part(**part) for part in reported["parts"]]
    text = phase_texts.part_text(row, found)
    if text is None:
        return []
    others = [
        f"  generation {part.generation} at {time_text(part.event_time)}: {part.rebalance_id}"
        for part in found
        if part.rebalance_id != row["rebalance_id"]
    ]
    return [f"It is {text}" + (", along with:" if others else "."), *others]


def _messages(row: Row) -> str:
    """Return the cost in messages, as far as it is known."""
    if all(row.get(name) is None for name in COST_NAMES):
        return "Messages: how many were read twice or waited is not known."
    twice = repeated_text(row["repeated_messages"], row["repeated_estimated_messages"])
    waited = waiting_text(row["waiting_messages"], row["waiting_estimated_messages"])
    return f"Messages: {twice or 'how many were read twice is not known'}; {waited or 'how many waited is not known'}."


def _queues_unread(row: Row, taken_over: list[Row]) -> list[str]:
    """Return the outage of each queue, as members reported it at the takeover, else as the row lists it."""
    reported = {(outage["topic"], outage["broker"], outage["queue_id"]): outage for outage in taken_over}
    listed = [{**outage, **reported.pop(_place(outage), {})} for outage in row["outages"] or []]
    every = [*listed, *reported.values()]
    lines = []
    for outage in every[:MOVES_SHOWN]:
        queue = queue_name(outage["topic"], outage["broker"], outage["queue_id"])
        then = f", then read by {outage['member_id']}" if outage["member_id"] else ", and nobody reads it"
        lines.append(f"  {queue}: {between(outage['outage_min_ms'], outage['outage_max_ms'])}{then}")
    left = max(row["outage_queues"] or 0, len(every)) - MOVES_SHOWN
    if left > 0:
        lines.append(f"  … and {count(left, 'more queue')}; --json lists more")
    return lines


def _place(row: Row) -> tuple[str, str | None, int]:
    return row["topic"], row["broker"], row["queue_id"]


def _agreement(reported: dict[str, Any]) -> list[str]:
    row, audit = reported["rebalance"], reported.get("audit")
    return [*_compared(row, audit), *(audit_texts.story(audit) if audit is not None else [])]


def _compared(row: Row, audit: Row | None) -> list[str]:
    if row["agrees"] is None and audit is not None and audit["verdict"] != "not_recomputable":
        return [f"Clients: there was nothing to compare yet; the audit is of {time_text(audit['audited_at'])}."]
    if row["agrees"] is None:
        why = SENTENCES.get(row.get("agrees_reason") or NOT_REPORTED, row.get("agrees_reason"))
        return [f"Clients: computed and reported assignment are not compared: {why}."]
    if row["agrees"]:
        left_out = f"; {SENTENCES[GROWTH_NOT_DUE]}" if row.get("agrees_reason") == GROWTH_NOT_DUE else ""
        return [f"Clients: the reported assignment is the computed one{left_out}."]
    return [f"Clients: reported and computed assignment differ on {count(row['queues_differing'] or 0, 'queue')}."]
