"""The laws of groups of Kafka whose coordinator reported the generations: as recorded, and under policies.

A past is the lives of members. The core, which counts generations itself where members' own events are known, decides
it; a coordinator that assigns likewise would have reported it. What the tables keep of these reports is decided again.
"""

from __future__ import annotations

import functools
import random
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import msgspec
import pytest

from streaming.history.group_history import found_history
from streaming.history.group_rows import GroupRows, group_rows
from streaming.history.policy_outcomes import outcomes_of
from streaming.history.policy_texts import policy_of
from streaming.tables.errors import NotFoundError
from tests.core_config import core_config
from tests.model.check import one_batch
from tests.model.core_tables import run_core
from tests.model.histories import FEATURES, history
from tests.model.times import T0, Event
from tests.simulation.core_run import rows_of
from tests.simulation.given_tables import GivenTables
from tests.simulation.recorded_day import RULES
from tests.streaming.history.test_identity import _NOT_RECORDED, _NOT_RECORDED_OF_COORDINATORS, groups_of
from udfs.group.replay.decided_generations import Generation
from udfs.group.replay.recorded_generations import DIFFERS
from udfs.group.replay.replay import History, Replayed, replay
from udfs.group.replay.reported_past import DECIDED_OTHERWISE, ReportedPast
from udfs.model.events import MemberJoined, MemberLeft, TopicQueues
from udfs.model.group_api import DueEvent

TIMEOUT_MS, LONG_MS = 10_000, 30_000
ABSENCES = (2_000, TIMEOUT_MS - 1, TIMEOUT_MS + 1, 25_000, LONG_MS, LONG_MS + 1, 60_000)
STRATEGIES = ("range", "roundrobin", "sticky")
QUICK, SLOW = 60, 2_000


class Life(NamedTuple):
    """A process from its join to its end; until is when it closed or was killed."""

    client: str
    member_id: str
    since: int
    until: int | None
    is_killed: bool
    topics: tuple[str, ...]
    timeout_ms: int = TIMEOUT_MS
    instance_id: str | None = None

    @property
    def departs(self) -> int | None:
        return None if self.until is None else self.until + self.timeout_ms * self.is_killed


class World(NamedTuple):
    """What happens to a group; growths are (time, topic, partitions)."""

    lives: list[Life]
    growths: list[tuple[int, str, int]]
    strategy: str


def world(seed: int) -> World:
    """Return the random lives of a few clients: restarts, pauses beyond the timeout, growth."""
    chance = random.Random(seed)
    lives: list[Life] = []
    for client in "abcd"[: chance.randint(2, 4)]:
        time_ms, number = chance.randrange(1, 60_000), 0
        topics = chance.choice((("t",), ("s", "t")))
        while time_ms < 240_000:
            until = time_ms + chance.randrange(5_000, 90_000)
            number += 1
            lives.append(Life(client, f"{client}-{number}", time_ms, until, chance.random() < 0.5, topics))
            time_ms = until + chance.choice(
                (2_000, TIMEOUT_MS - 1, TIMEOUT_MS + 1, 25_000, LONG_MS, LONG_MS + 1, 60_000)
            )
    # It grows while somebody is there: what nobody sees is known with the next generation that somebody begins.
    grown = (chance.choice(lives).since + 1, "t", 6 + chance.randint(0, 2))
    growths = [(0, "s", 3), (0, "t", chance.randint(1, 5)), *[grown] * (chance.random() < 0.5)]
    return World(lives, growths, chance.choice(STRATEGIES))


def member_events(made: World) -> list[DueEvent]:
    """Return the members' own events."""
    common = {"schema_version": 1, "system": "kafka", "cluster": "c"}
    events: list[Any] = [
        TopicQueues(**common, event_time=T0 + at, topic=topic, queue_count=count)  # type: ignore[arg-type]
        for at, topic, count in made.growths
    ]
    for life in made.lives:
        named = common | {"group": "g", "member_id": life.member_id}
        events.append(
            MemberJoined(
                **named,  # type: ignore[arg-type]
                event_time=T0 + life.since,
                **described(life, made.strategy),
            )
        )
        if life.departs is not None:
            how = "expired" if life.is_killed else "left"
            events.append(MemberLeft(**named, event_time=T0 + life.departs, how=how))  # type: ignore[arg-type]
    events.sort(key=lambda event: event.event_time)
    return [DueEvent(event, f"e{number}") for number, event in enumerate(events)]


def described(life: Life, strategy: str) -> dict[str, Any]:
    fields = {"subscriptions": life.topics, "strategies": (strategy,), "session_timeout_ms": life.timeout_ms}
    return fields | {"client_id": life.client, "host": "/10.0.0.1", "instance_id": life.instance_id}


def decided(made: World) -> Replayed:
    """Return what the core decides of the members' own events."""
    history = History(cluster="c", group_id="g", system="kafka", events=tuple(member_events(made)))
    return replay(history, core_config())


def coordinator_events(made: World) -> list[Event]:
    """Return what a coordinator that assigns as the core does would have reported."""
    common = {"schema_version": 1, "system": "kafka", "cluster": "c"}
    found = decided(made)
    events: list[Event] = [
        common | {"type": "topic_queues", "event_time": T0 + at, "topic": topic, "queue_count": count}
        for at, topic, count in made.growths
    ]
    for life in made.lives:
        if life.departs is not None:
            how = "expired" if life.is_killed else "left"
            left = {"group": "g", "member_id": life.member_id, "how": how}
            events.append(common | {"type": "member_left", "event_time": T0 + life.departs} | left)
    owners = owners_by_time(found)
    for row in found.rebalances:
        lives = [life for life in made.lives if is_there(life, row.event_time - T0)]
        held: dict[str, list[dict[str, Any]]] = {life.member_id: [] for life in lives}
        for (topic, _, queue_id), member_id in sorted(owners[row.event_time].items()):
            held[member_id].append({"topic": topic, "queue_id": queue_id})
        members = [{"member_id": life.member_id} | described(life, made.strategy) for life in lives]
        fields: dict[str, Any] = {"group": "g", "generation": row.generation, "state": "Stable" if lives else "Empty"}
        if lives:
            fields |= {"strategy": made.strategy, "leader": lives[0].member_id, "assignments": held}
        events.append(common | {"type": "group_snapshot", "event_time": row.event_time, "members": members} | fields)
    return sorted(events, key=lambda event: event["event_time"])


def is_there(life: Life, at: int) -> bool:
    return life.since <= at and (life.departs is None or at < life.departs)


def owners_by_time(found: Replayed) -> dict[int, dict[Any, str]]:
    """Return the owners right after each rebalance."""
    spans = rows_of(found.changes).get("assignments", [])
    return {
        row.event_time: {
            (span["topic"], None, span["queue_id"]): span["member_id"]
            for span in spans
            if span["valid_from"] <= row.event_time
            and (span.get("valid_to") is None or row.event_time < span["valid_to"])
        }
        for row in found.rebalances
    }


def tables_of(made: World) -> GroupRows:
    return group_rows(GivenTables.of(run_core([coordinator_events(made)])), "c", "g")


def reported(rows: GroupRows, config: Any) -> ReportedPast:
    history = found_history(rows, 0).history
    return ReportedPast(history, replay(history, config), config)


class Seen(NamedTuple):
    """The world of a seed, the rows of its group, and what is decided of either."""

    made: World
    rows: GroupRows
    past: ReportedPast
    decided: Replayed


@functools.lru_cache(QUICK)
def seen(seed: int) -> Seen:
    """Return the world of a seed, once for all policies."""
    made = world(seed)
    rows = tables_of(made)
    return Seen(made, rows, reported(rows, core_config()), decided(made))


def figures(generations: Sequence[Any], end: int) -> list[tuple[Any, ...]]:
    names = ("event_time", "members_before", "members_after", "idle_members", "spread", "queues_moved")
    return [
        tuple(getattr(generation, name) for name in names) for generation in generations if generation.event_time <= end
    ]


# ---- the policies, on lives


def without_a(made: World) -> World:
    return made._replace(lives=[life for life in made.lives if life.client != "a"])


def nine_queues(made: World) -> World:
    return made._replace(growths=[(at, topic, 9 if topic == "t" else count) for at, topic, count in made.growths])


def by_roundrobin(made: World) -> World:
    return made._replace(strategy="roundrobin")


def graceful(made: World) -> World:
    return made._replace(
        lives=[
            life._replace(is_killed=False, until=(life.until or 0) + 1) if life.is_killed else life
            for life in made.lives
        ]
    )


def held_up(made: World, silences: Sequence[tuple[int, int]], back: Collection[Life] = ()) -> World:
    """Return the lives as a coordinator knows of them that waits for silent members before it begins a generation.

    Args:
        back: Those that take the place of a static member, which they do at once if it has one.
    """

    def known(at: int) -> int:
        while later := [until for since, until in silences if since < at < until]:
            at = max(later)
        return at

    lives: list[Life] = []
    for life in sorted(made.lives, key=lambda life: life.since):
        since = known(life.since)
        former = next((other for other in reversed(lives) if other.client == life.client), None)
        if life in back and former is not None:
            if former.since < life.since:
                since = life.since
            else:
                lives.remove(former)  # its own join waits still
        until = None if life.departs is None else known(life.departs) - life.timeout_ms * life.is_killed
        lives.append(life._replace(since=since, until=until))
    lives = [life for life in lives if life.departs is None or life.since < life.departs]
    return made._replace(lives=lives, growths=[(known(at), topic, count) for at, topic, count in made.growths])


def silence(life: Life) -> tuple[int, int]:
    return life.until or 0, life.departs or 0


def longer(made: World) -> World:
    """Who joins after its last life expired, but within the longer timeout, was silent and goes on."""
    lives: list[Life] = []
    silences: list[tuple[int, int]] = []
    for life in sorted(made.lives, key=lambda life: life.since):
        now = life._replace(timeout_ms=LONG_MS)
        former = next((other for other in reversed(lives) if other.client == life.client), None)
        if former is not None and former.is_killed:
            silent = former.until or 0
            if silent + TIMEOUT_MS <= life.since <= silent + LONG_MS:
                lives.remove(former)
                silences.append((silent, life.since))
                now = now._replace(member_id=former.member_id, since=former.since)
        lives.append(now)
    silences += [silence(life) for life in lives if life.is_killed]
    return held_up(made._replace(lives=lives), silences)


def static(made: World) -> World:
    """Nobody leaves; who is back before its session expires has its place again."""
    lives: list[Life] = []
    silences: list[tuple[int, int]] = []
    returns: set[tuple[str, int]] = set()
    for life in made.lives:
        after = [other.since for other in made.lives if other.client == life.client and other.since > life.since]
        silent = life.until or 0
        is_back = bool(after) and min(after) <= silent + LONG_MS
        changed = life._replace(timeout_ms=LONG_MS, instance_id=life.client, is_killed=True)
        silences.append((silent, min(after)) if is_back else silence(changed))
        returns |= {(life.client, min(after))} if is_back else set()
        lives.append(changed._replace(until=None) if is_back else changed)
    back = [life for life in lives if (life.client, life.since) in returns]
    return held_up(made._replace(lives=lives), silences, back)


POLICIES: dict[str, Callable[[World], World]] = {
    "without a-*": without_a,
    "queues t=9": nine_queues,
    "strategy=roundrobin": by_roundrobin,
    "graceful": graceful,
    "session_timeout=30s": longer,
    "static+session_timeout=30s": static,
}


def check(seed: int, text: str, change: Callable[[World], World]) -> bool:
    """Check the law; return whether the policy changed anything."""
    made, rows, past, lived = seen(seed)
    try:
        policy = policy_of(text, rows)
    except NotFoundError:
        return False
    end = rows.rebalances[-1]["event_time"]
    generations, _ = past.under(policy)
    expected = decided(change(made))
    assert figures(generations, end) == figures(expected.rebalances, end), (seed, text)
    owners = owners_by_time(expected)
    for generation in generations:
        if generation.event_time <= end:
            assert plain(generation) == owners[generation.event_time], (seed, text, generation.event_time)
    return figures(generations, end) != figures(lived.rebalances, end)


def plain(generation: Generation) -> dict[Any, str]:
    return {queue: holders[0] for queue, holders in generation.owners.items()}


@pytest.mark.parametrize("text", POLICIES)
def test_a_policy_on_reported_generations_is_what_the_core_decides(text: str) -> None:
    assert sum(check(seed, text, POLICIES[text]) for seed in range(QUICK)) > QUICK // 4


def test_who_is_silent_holds_up_what_others_begin_until_its_session_is_over_or_it_is_back() -> None:
    """A coordinator completes a rebalance when all members have joined again; nobody joins for one that is away."""
    away = Life("b", "b-1", 2_000, 10_000, False, ("t",))
    lives = [
        Life("a", "a-1", 1_000, None, False, ("t",)),
        away,
        Life("c", "c-1", 15_000, 18_000, False, ("t",)),
        Life("d", "d-1", 60_000, None, False, ("t",)),
    ]
    for back_at, waited_ms, expected in (
        # What c began at 15 s waits until the session of b is over; c has left again then.
        (None, 25_000, [(1_000, 1), (2_000, 2), (40_000, 1), (60_000, 2)]),
        # Nobody is there who was not before, but what was begun is completed.
        (25_000, 10_000, [(1_000, 1), (2_000, 2), (25_000, 2), (60_000, 3)]),
        # The nearest case: nobody else begins anything.
        (12_000, 0, [(1_000, 1), (2_000, 2), (15_000, 3), (18_000, 2), (60_000, 3)]),
    ):
        back = [] if back_at is None else [away._replace(member_id="b-2", since=back_at, until=None)]
        rows = tables_of(World([*lives, *back], [(0, "t", 6)], "range"))
        generations, _ = reported(rows, core_config()).under(policy_of("static=b+session_timeout=30s", rows))
        assert [(row.event_time - T0, row.members_after) for row in generations] == expected, back_at
        assert sum(row.waited_ms for row in generations) == waited_ms, back_at
        (outcome,) = outcomes_of(rows, ["static=b+session_timeout=30s"], core_config(), None).outcomes[1:]
        note = "1 rebalance would have waited for silent members"
        assert outcome.waiting_pause_ms == 6 * waited_ms
        assert any(text.startswith(note) for text in outcome.notes) == bool(waited_ms), outcome.notes


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("text", POLICIES)
def test_very_many_policies_on_reported_generations_are_what_the_core_decides(text: str) -> None:
    assert sum(check(seed, text, POLICIES[text]) for seed in range(QUICK, SLOW)) > SLOW // 4


@pytest.mark.parametrize("seed", range(5))
def test_what_stands_still_and_how_many_generations_it_takes_depend_on_the_protocol(seed: int) -> None:
    made = world(seed)._replace(strategy="range")
    rows = tables_of(made)
    group = reported(rows, core_config())
    by_protocol = {
        protocol: group.under(policy_of(f"protocol={protocol}", rows))[0]
        for protocol in ("eager", "cooperative", "consumer")
    }
    eager, cooperative, consumer = by_protocol.values()
    # The group was eager all along: everything stands in each of its generations.
    assert figures(eager, 10**18) == figures(decided(made).rebalances, rows.rebalances[-1]["event_time"])
    owned = [0, *(len(generation.owners) for generation in eager)]
    assert [generation.queues_stopped for generation in eager] == owned[:-1]
    # A cooperative change takes a second generation where a queue has to be revoked first; only such queues stand.
    assert len(cooperative) > len(eager)
    assert sum(row.queues_stopped for row in cooperative) < sum(row.queues_stopped for row in eager)
    # In the newer protocol each member that joins or departs has an epoch of its own, and growth has one.
    changes = sum(1 + (life.departs is not None and T0 + life.departs <= eager[-1].event_time) for life in made.lives)
    times = {generation.event_time for generation in consumer}
    assert len(consumer) == changes + len(
        times - {T0 + at for life in made.lives for at in (life.since, life.departs or 0)}
    )
    assert sum(row.queues_stopped for row in consumer) < sum(row.queues_stopped for row in eager)


def test_without_a_policy_the_core_decides_what_a_coordinator_reported() -> None:
    same = 0
    for seed in range(QUICK):
        decisions = seen(seed).past.as_recorded()
        assert [decision for decision in decisions if decision.reason is not None] == [], seed
        same += len(decisions)
    assert same > 500


def test_the_generations_of_the_day_are_decided_as_recorded(day_tables: GivenTables) -> None:
    """Where the audit agrees; the others are listed with their reasons."""
    reasons: Counter[str | None] = Counter()
    names = ("event_time", "members_before", "members_after", "idle_members", "spread")
    for cluster, group_id in groups_of(day_tables):
        rows = group_rows(day_tables, cluster, group_id)
        if rows.rebalances[0]["generation_source"] != "reported":
            continue
        by_number = {(row["event_time"], row["generation"]): row for row in rows.rebalances}
        for decision in reported(rows, RULES).as_recorded():
            reasons[decision.reason] += 1
            row = by_number[decision.recorded.time_ms, decision.recorded.generation]
            if decision.reason is None:
                assert {name: getattr(decision.decided, name) for name in names} == {name: row[name] for name in names}
                # A queue that a cooperative rebalance revoked moves with the generation that assigns it.
                is_cooperative = row["strategy"] == "kafka.cooperative-sticky"
                assert is_cooperative or decision.decided.queues_moved == row["queues_moved"], row
    assert reasons[None] == 186
    assert reasons == {None: 186, "custom_strategy": 37, DIFFERS: 13}
    assert DECIDED_OTHERWISE not in reasons


def test_in_an_eager_protocol_all_queues_with_an_owner_stop_whatever_their_strategy(day_tables: GivenTables) -> None:
    """Also in generations that the core does not give; groups of a custom strategy have no others."""
    custom = 0
    for cluster, group_id in groups_of(day_tables):
        rows = group_rows(day_tables, cluster, group_id)
        strategies = {row["strategy"] for row in rows.rebalances}
        if rows.rebalances[0]["generation_source"] != "reported" or "kafka.cooperative-sticky" in strategies:
            continue
        found = outcomes_of(rows, [], RULES, None)
        (recorded,) = found.outcomes
        owned = [row["queues_kept"] + row["queues_moved"] + row["queues_revoked"] for row in rows.rebalances]
        assert recorded.stopped == sum(owned), group_id
        # What the core does not give is not as recorded, however well the rest is: else an estimate would seem sure.
        reasons = [decision.reason for decision in reported(rows, RULES).as_recorded() if decision.reason is not None]
        assert [result.reason for result in found.not_reproduced] == reasons, group_id
        assert reasons
        custom += "kafka.acme.tiers" in strategies
    assert custom


def test_a_history_of_generations_may_begin_after_any(day_tables: GivenTables) -> None:
    same = 0
    for cluster, group_id in groups_of(day_tables):
        rebalances = group_rows(day_tables, cluster, group_id).rebalances
        if rebalances[0]["generation_source"] == "reported":
            third = rebalances[len(rebalances) // 3]["event_time"]
            decisions = reported(group_rows(day_tables, cluster, group_id, since_ms=third), RULES).as_recorded()
            assert {decision.reason for decision in decisions} <= {None, "custom_strategy", DIFFERS}
            same += sum(decision.reason is None for decision in decisions)
    assert same > 100


def test_generations_of_random_coordinators_are_decided_as_recorded() -> None:
    same = 0
    for seed in range(QUICK):
        made = history(seed, frozenset(FEATURES) - _NOT_RECORDED - _NOT_RECORDED_OF_COORDINATORS)
        tables = GivenTables.of(run_core(one_batch(made), made.how))
        for cluster, group_id in groups_of(tables):
            rows = group_rows(tables, cluster, group_id)
            if {row["generation_source"] for row in rows.rebalances} == {"reported"}:
                decisions = reported(rows, core_config()).as_recorded()
                reasons = {decision.reason for decision in decisions}
                assert reasons <= {None, DIFFERS, "not_reported", "topics_unknown", "growth_not_due"}, (seed, group_id)
                same += sum(decision.reason is None for decision in decisions)
    assert same > 50


def test_a_past_that_is_not_decided_says_why() -> None:
    rows = tables_of(world(1))
    history = found_history(rows, 0).history
    again = replay(history, core_config())
    changed = [msgspec.structs.replace(row, agrees=None, agrees_reason="library_unknown") for row in again.rebalances]
    group = ReportedPast(history, msgspec.structs.replace(again, rebalances=changed), core_config())
    assert {decision.reason for decision in group.as_recorded()} == {"library_unknown"}
