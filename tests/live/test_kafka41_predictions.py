"""Predictions of a group's past under a policy, and of a change, are what a real Kafka 4.1 coordinator then does."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from streaming.history.group_history import found_history
from streaming.history.group_rows import GroupRows, group_rows
from streaming.history.policy_outcomes import outcomes_of
from streaming.history.policy_texts import policy_of
from streaming.views.foresight import answer
from streaming.views.known_groups import found_group
from streaming.views.wished_changes import Wish
from tests.core_config import core_config
from tests.kit.brokers import Broker
from tests.kit.members import Member
from tests.live.collecting import CLUSTER, collecting
from tests.live.prediction_plays import (
    LONG_MS,
    ONE,
    TWO,
    Action,
    Play,
    Settings,
    random_script,
    renamed_run,
    run_of_group,
)
from tests.simulation.core_run import CoreRun
from tests.simulation.given_tables import GivenTables
from udfs.group.replay.replay import replay
from udfs.group.replay.reported_past import ReportedPast
from udfs.group.state.group import Owners

pytestmark = [pytest.mark.broker, pytest.mark.timeout(600)]

CONFIG = core_config()
COUNTS = {ONE: 5, TWO: 2}
SLOW = range(1, 6)


class Policy(NamedTuple):
    """A policy, and how a group plays that really has it."""

    text: str
    real: Settings


POLICIES = (
    Policy("strategy=kafka.cooperative-sticky", Settings("cooperating", COUNTS, ("cooperative-sticky",))),
    Policy(
        f"static+session_timeout={LONG_MS // 1_000}s", Settings("lasting", COUNTS, is_static=True, session_ms=LONG_MS)
    ),
    Policy(f"queues grown.{ONE}=10", Settings("grown", COUNTS | {ONE: 10})),
)


class Rebalance(NamedTuple):
    """What is compared of a rebalance; owners are clients, and of topics only what is their own of their names."""

    members: int
    moved: int
    stopped: int
    idle: int | None
    spread: int | None
    owners: dict[tuple[str, int], str]


def history_of(run: CoreRun, group: str) -> tuple[GroupRows, ReportedPast]:
    rows = group_rows(GivenTables.of(run), CLUSTER, group)
    history = found_history(rows, CONFIG.settle_ms).history
    return rows, ReportedPast(history, replay(history, CONFIG), CONFIG)


def compared(generation: Any, owners: Owners) -> Rebalance:
    return Rebalance(
        generation.members_after,
        generation.queues_moved,
        generation.queues_stopped,
        generation.idle_members,
        generation.spread,
        {(topic.rpartition(".")[2], number): holders[0][0] for (topic, _, number), holders in owners.items()},
    )


def real_rebalances(past: ReportedPast) -> list[Rebalance]:
    """Return what a group had: its owners are those that its coordinator reported."""
    found = []
    for decision in past.as_recorded():
        assert decision.reason is None, decision
        found.append(compared(decision.decided, decision.recorded.owners or {}))
    return found


def check(
    broker: Broker,
    start: Callable[..., Member],
    folder: Path,
    script: Sequence[Action],
    name: str,
    policies: Sequence[Policy] = POLICIES,
) -> None:
    """Play a script as it is and under each policy, and compare."""
    recorded = Settings(f"recorded{name}", COUNTS, waits=True)
    reals = [policy.real._replace(group=f"{policy.real.group}{name}") for policy in policies]
    with collecting(broker, folder), ThreadPoolExecutor() as pool:
        begun = [pool.submit(Play(broker, start, settings).play, script) for settings in (recorded, *reals)]
        was, *plays = (playing.result() for playing in begun)
    groups = [play.settings.group for play in (was, *plays)]
    for policy, play in zip(policies, plays, strict=True):
        group = play.settings.group
        rows, past = history_of(renamed_run(folder, was, play, groups), group)
        text = policy.text.replace(policy.real.group, group)
        predicted = [compared(generation, generation.owners) for generation in past.under(policy_of(text, rows))[0]]
        real_rows, real_past = history_of(
            run_of_group(folder, group, [name for name in groups if name != group]), group
        )
        assert predicted == real_rebalances(real_past), text
        assert predicted[-1].owners == play.moments[-1].held
        outcome = outcomes_of(rows, [text], CONFIG, None).outcomes[1]
        happened = outcomes_of(real_rows, [], CONFIG, None).outcomes[0]
        assert (outcome.rebalances, outcome.moved, outcome.stopped) == (
            happened.rebalances,
            happened.moved,
            happened.stopped,
        )
        pauses = outcome.queue_pause_ms, happened.queue_pause_ms
        factor = pauses[0] / pauses[1] if pauses[0] and pauses[1] else None
        sys.stdout.write(f"{text}: queue-pause {pauses[0]} ms predicted, {pauses[1]} ms real, factor {factor}\n")


def test_a_past_under_a_policy_is_what_a_group_with_it_does(
    kafka41: Broker, new_member: Callable[..., Member], tmp_path: Path
) -> None:
    check(kafka41, new_member, tmp_path, random_script(0), "-0")


@pytest.mark.slow
@pytest.mark.parametrize("seed", SLOW)
def test_more_pasts_under_policies_are_what_groups_with_them_do(
    kafka41: Broker, new_member: Callable[..., Member], tmp_path: Path, seed: int
) -> None:
    check(kafka41, new_member, tmp_path, random_script(seed), f"-{seed}")


def test_a_static_member_that_is_away_holds_up_the_rebalances_of_others(
    kafka41: Broker, new_member: Callable[..., Member], tmp_path: Path
) -> None:
    script = [Action("join", "b"), Action("join", "c"), Action("away", "c"), Action("join", "d"), Action("wait")]
    check(kafka41, new_member, tmp_path, [*script, Action("join", "e")], "-away", POLICIES[1:2])


CHANGES = (
    *(Action("join", client) for client in "abc"),
    Action("leave", "b"),
    Action("grow", total=8),
    Action("join", "d"),
    Action("leave", "a"),
)
GROUPS = (
    *(
        Settings(f"changed.{name}", COUNTS, (name,), session_ms=30_000)
        for name in ("range", "roundrobin", "sticky", "cooperative-sticky")
    ),
    Settings("changed.uniform", COUNTS, more={"group.protocol": "consumer"}),
)


def test_a_foreseen_change_is_what_a_group_then_does(
    kafka41: Broker, new_member: Callable[..., Member], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with collecting(kafka41, tmp_path), ThreadPoolExecutor() as pool:
        playing = [pool.submit(Play(kafka41, new_member, settings).play, CHANGES) for settings in GROUPS]
        plays = [play.result() for play in playing]
    tables: Any = GivenTables.of(run_of_group(tmp_path, "", ()))
    for play in plays:
        group = play.settings.group
        clients = {member_id: client for client, ids in play.ids.items() for member_id in ids}
        for moment in play.moments[1:]:
            wish = {
                "join": Wish(add=1),
                "leave": Wish(remove=[moment.left]),
                "grow": Wish(queues={play.topic(ONE): moment.action.total}),
            }[moment.action.kind]
            # What nobody knows beforehand is which id a new member gets.
            monkeypatch.setattr("udfs.group.what_if.planned_change.new_id", lambda *_, own=moment.joined: own)
            found = found_group(tables, group, None, moment.at, CONFIG.vote_tie_order)
            after = answer(tables, found, wish, CONFIG, moment.at).prediction.after
            held = {
                (topic.removeprefix(f"{group}."), number): clients[holders[0]]
                for (topic, _, number), holders in after.owners.items()
            }
            assert held == moment.held, (group, moment)
