"""The law of policies about members: what they make of a history is what the core decides of such members."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import pytest

from streaming.history.group_history import found_history
from streaming.history.group_rows import GroupRows, group_rows
from streaming.history.policy_texts import policy_of
from streaming.tables.errors import NotFoundError
from streaming.tables.schema import Row
from streaming.views.member_descriptions import description
from tests.core_config import core_config
from tests.model.check import one_batch
from tests.model.conditions import Conditions
from tests.model.core_tables import run_core
from tests.model.histories import FEATURES, history
from tests.model.times import T0, Event
from tests.simulation.core_run import CoreRun
from tests.simulation.given_tables import GivenTables
from tests.streaming.history.test_identity import groups_of
from tests.streaming.history.test_policies import decided as figures
from udfs.group.replay.member_policies import Lived, MemberPolicy, lived
from udfs.group.replay.policy import decided
from udfs.group.replay.replay import History, Replayed, replay
from udfs.group.replay.stays import Stay, stays_of, with_stays
from udfs.group.what_if.planned_change import new_id

# What a history does not have (test_identity.py), what changes with who is there (polls, reports), and what makes one
# client of several members (descriptions with client ids); who is ahead of the history's end; when groups were deleted
# that had no members any more. Of Kafka's groups also settings that changed nothing when they were made.
_LEFT_OUT = frozenset(
    (
        "settles",
        "late",
        "ties",
        "reports",
        "polls",
        "describes",
        "unknown",
        "assignments",
        "cooperative",
        "statics",
        "ahead",
        "deletes",
    )
)
_LEFT_OUT_OF_KAFKA = frozenset(("settings",))
QUICK, SLOW = 40, 3_000
LONG_MS = 31_000  # longer than any timeout of a random history


class Past(NamedTuple):
    """A group, its rows, the events that made it, its history and what is decided of that."""

    rows: GroupRows
    events: list[Event]
    found: History
    as_recorded: Replayed

    @property
    def sessions(self) -> list[Row]:
        return self.rows.sessions

    def changed(self, change: Callable[[Event], Iterable[Event]]) -> list[Event]:
        """Return the events with those of the group's members changed."""
        return [
            now
            for event in self.events
            for now in (change(event) if event.get("group") == self.rows.group_id else [event])
        ]


Change = Callable[[Past], list[Event]]


@functools.lru_cache(2 * QUICK)
def pasts(seed: int, also_left_out: frozenset[str] = frozenset()) -> list[tuple[Past, Conditions]]:
    """Return the groups of a random history, without departures of members that were not there."""
    found: list[tuple[Past, Conditions]] = []
    made = history(seed, frozenset(FEATURES) - _LEFT_OUT - also_left_out)
    (batch,) = one_batch(made)
    tables = GivenTables.of(run_core([batch], made.how))
    ended = {
        (row["cluster"], row["group_id"], row["member_id"], row["left_at"])
        for row in tables.rows("members")
        if row["left_reason"] == "left"
    }
    kept = [
        event
        for event in batch
        if event["type"] != "member_left"
        or (event["cluster"], event["group"], event["member_id"], event["event_time"]) in ended
    ]
    tables = GivenTables.of(run_core([kept], made.how))
    for cluster, group_id in groups_of(tables):
        rows = group_rows(tables, cluster, group_id)
        if rows.rebalances[0]["generation_source"] == "counted" and not (
            rows.system == "kafka" and made.features & _LEFT_OUT_OF_KAFKA
        ):
            past = found_history(rows, core_config().settle_ms).history
            events = [event for event in kept if event["cluster"] == cluster]
            found.append((Past(rows, events, past, replay(past, core_config())), made.how))
    return found


def check(seed: int, text: str, change: Change, **rules: Any) -> Counter[str]:
    """Compare what is changed in the tables' history with what is changed in the events; return what it did."""
    done: Counter[str] = Counter()
    # When an empty group was set something is not recorded; here it may have members then.
    for past, how in pasts(seed, frozenset(("settings",)) if "=" in text else frozenset()):
        rows = past.rows
        try:
            policy = policy_of(text, rows)
        except NotFoundError:
            continue  # it means nothing there: static members of RocketMQ, the only client
        if "join_delay" in text and rows.system != "rocketmq":
            continue  # Kafka's is about empty groups, see below
        run = CoreRun(core_config(**{"shards": how.shards, "settle_ms": how.settle_ms, **rules}))
        expected = decided_of(run, change(past), rows)
        end = past.found.events[-1].event.event_time - rules.get("settle_ms", 0)
        again = decided(policy, past.found, past.as_recorded, core_config())
        within = [[row for row in side if row.event_time <= end] for side in (again.replayed.rebalances, expected)]
        assert figures(within[0]) == figures(within[1]), (seed, rows.cluster, rows.group_id, text)
        done["differs"] += figures(again.replayed.rebalances) != figures(past.as_recorded.rebalances)
        if again.lived is not None:
            done.update({name: getattr(again.lived, name) for name in ("undone", "later", "kills")})
    return done


def decided_of(run: CoreRun, events: Sequence[Event], rows: GroupRows) -> list[Any]:
    """Return what the core decides of a group over these events."""
    ordered = sorted(events, key=lambda event: event["event_time"])
    run.batch(T0 + 10**9, [json.dumps(event).encode() for event in ordered])
    run.flush(T0 + 10**9 + 1)
    return [row for row in run.rebalances if (row.cluster, row.group_id) == (rows.cluster, rows.group_id)]


def named(past: Past, kind: str, member_id: str, time_ms: int, **fields: Any) -> Event:
    common = {"schema_version": 1, "system": past.rows.system, "cluster": past.rows.cluster, "type": kind}
    return common | {"event_time": time_ms, "group": past.rows.group_id, "member_id": member_id} | fields


def timed(event: Event) -> Event:
    return event | {"session_timeout_ms": LONG_MS} if "session_timeout_ms" in event else event


def longer(past: Past) -> list[Event]:
    return past.changed(lambda event: [timed(event)])


def leaving(past: Past) -> list[Event]:
    expired = [session for session in past.sessions if session["left_reason"] == "expired"]
    return [
        *past.events,
        *(named(past, "member_left", each["member_id"], each["last_heartbeat_at"] + 1) for each in expired),
    ]


def static(past: Past) -> list[Event]:
    def change(event: Event) -> list[Event]:
        if event["type"] == "member_left":  # its last sign of life
            return [named(past, "heartbeat", event["member_id"], event["event_time"])]
        if event["type"] == "member_joined":
            event = event | {"instance_id": f"i-{event['member_id']}"}
        return [timed(event)]

    return past.changed(change)


def two_more(past: Past) -> list[Event]:
    described = [description(session, session["joined_at"]) for session in past.sessions]
    kinds = Counter((fields["subscriptions"], fields["strategies"]) for fields in described)
    usual = next(
        fields for fields in described if (fields["subscriptions"], fields["strategies"]) == kinds.most_common(1)[0][0]
    )
    fields = {name: value for name, value in usual.items() if value is not None and name != "rack"}
    fields["session_timeout_ms"] = 10**12
    ids = [new_id("last", 1), new_id("last", 2)]
    times = sorted({session[name] for session in past.sessions for name in ("joined_at", "left_at")} - {None})
    there = False
    made: list[Event] = []
    for time_ms in times:
        now = any(
            session["joined_at"] <= time_ms and (session["left_at"] is None or time_ms < session["left_at"])
            for session in past.sessions
        )
        kind = "member_joined" if now else "member_left"
        if now != there:
            made += [named(past, kind, member_id, time_ms, **(fields if now else {})) for member_id in ids]
        there = now
    return [*made, *past.events]


def one_less(past: Past) -> list[Event]:
    last = list(dict.fromkeys(session["member_id"] for session in past.sessions))[-1]
    return past.changed(lambda event: [] if event.get("member_id") == last else [event])


SAME: Change = lambda past: past.events  # noqa: E731
LAWS: dict[str, tuple[str, Change, dict[str, Any], tuple[str, ...]]] = {
    "timeout": ("session_timeout=31s", longer, {}, ("undone", "later")),
    "graceful": ("graceful", leaving, {}, ("kills",)),
    "static": ("static+session_timeout=31s", static, {}, ("undone",)),
    "more": ("members=+2", two_more, {}, ("differs",)),
    "fewer": ("members=-1", one_less, {}, ("differs",)),
    "delay": ("join_delay=2s", SAME, {"settle_ms": 2_000}, ("differs",)),
}


@pytest.mark.parametrize("law", LAWS)
def test_a_policy_about_members_is_what_the_core_decides_of_them(law: str) -> None:
    text, change, rules, what = LAWS[law]
    done = sum((check(seed, text, change, **rules) for seed in range(QUICK)), Counter())
    assert min(done[name] for name in what) > 3


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("law", LAWS)
def test_very_many_policies_about_members_are_what_the_core_decides_of_them(law: str) -> None:
    text, change, rules, what = LAWS[law]
    done = sum((check(seed, text, change, **rules) for seed in range(QUICK, SLOW)), Counter())
    assert min(done[name] for name in what) > 100


def stay(member_id: str, since: int, until: int | None = None, how: Any = "left", **fields: Any) -> Stay:
    described = {"subscriptions": ("t",), "strategies": ("range",), "instance_id": None, "session_timeout_ms": 10}
    described |= dict.fromkeys(("client_id", "host", "rack")) | fields
    client = fields.get("client_id") or member_id
    ended = {} if until is None else {"until": until, "left_at": until, "how": how}
    return Stay(member_id=member_id, client=client, since=since, described=((since, described),), **ended)


def times(found: Lived) -> list[tuple[str, int, int | None, str | None]]:
    return [(each.member_id, each.since, each.until, each.how) for each in found.stays]


@pytest.mark.parametrize(
    ("policy", "stays", "expected", "said"),
    [
        # An empty group waits for further members, and longer while they come; one that departs meanwhile never was.
        (
            {"join_delay_ms": 3},
            [stay("a", 0, 50), stay("b", 2, 4), stay("c", 5, 50), stay("d", 9, 50), stay("e", 60)],
            [("a", 9, 50, "left"), ("c", 9, 50, "left"), ("d", 9, 50, "left"), ("e", 63, None, None)],
            {},
        ),
        # Kafka's coordinator gives a member that was silent another id: its client shows that it is the same.
        (
            {"session_timeout_ms": 30},
            [stay("x-1", 0, 20, "expired", client_id="x"), stay("x-2", 40, 45, client_id="x")],
            [("x-1", 0, 45, "left")],
            {"undone": 1, "by_client": 1},
        ),
        # One millisecond too late.
        (
            {"session_timeout_ms": 30},
            [stay("x-1", 0, 20, "expired", client_id="x"), stay("x-2", 41, 45, client_id="x")],
            [("x-1", 0, 40, "expired"), ("x-2", 41, 45, "left")],
            {"later": 1},
        ),
        # Two members of one client depart; the first to return takes the place of the first to go.
        (
            {"static": frozenset(("x-1", "x-2", "x-3", "x-4")), "session_timeout_ms": 30},
            [
                *(stay("x-1", 0, 10, client_id="x"), stay("x-2", 1, 12, client_id="x")),
                *(stay("x-3", 20, client_id="x"), stay("x-4", 43, client_id="x")),
            ],
            [("x-1", 0, 20, "replaced"), ("x-2", 1, 42, "expired"), ("x-3", 20, None, None), ("x-4", 43, None, None)],
            {"undone": 1, "later": 1},
        ),
        # A static member does not leave, so its kill stays one.
        (
            {"is_graceful": True},
            [stay("a", 0, 30, "expired"), stay("s", 0, 30, "expired", instance_id="i"), stay("u", 0, 30, "gone")],
            [("a", 0, 21, "left"), ("s", 0, 30, "expired"), ("u", 0, 30, "gone")],
            {"kills": 1, "static_kills": 1, "unclear": 1},
        ),
        # New members are there whenever anyone is.
        (
            {"added": 1},
            [stay("a", 0, 10), stay("b", 5, 20), stay("c", 30)],
            [
                *(("a", 0, 10, "left"), (new_id("last", 1), 0, 20, "left"), ("b", 5, 20, "left")),
                *(("c", 30, None, None), (new_id("last", 1), 30, None, None)),
            ],
            {},
        ),
    ],
)
def test_what_members_do_under_a_policy(
    policy: dict[str, Any], stays: list[Stay], expected: list[Any], said: dict[str, int]
) -> None:
    found = lived(MemberPolicy(**policy), stays, "kafka", 10, end_ms=100)
    assert times(found) == expected
    counted = ("undone", "by_client", "later", "earlier", "unclear", "kills", "static_kills")
    assert {name: getattr(found, name) for name in counted if getattr(found, name)} == said


def test_what_members_did_is_decided_as_it_was() -> None:
    compared = 0
    for seed in range(QUICK):
        for past, _ in pasts(seed):
            lived = with_stays(past.found, stays_of(past.found, past.as_recorded.changes))
            again = replay(lived, core_config())
            assert figures(again.rebalances) == figures(past.as_recorded.rebalances), (seed, past.rows.group_id)
            compared += len(again.rebalances)
    assert compared > 200
