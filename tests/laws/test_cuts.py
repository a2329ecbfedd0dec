"""The law: what is decided does not depend on how events are cut into batches, tasks and shards, nor on whether
the state was exported and restored in between."""

from __future__ import annotations

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.udfs.shard.random_streams import Dice, dice, finish, lengths, moved, run
from tests.udfs.shard.shard_script import FAR
from udfs.group import coordinator


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(dice=dice, length=lengths, shards=st.integers(1, 3), tasks=st.integers(1, 3))
# A group is deleted while commits of the next one of its name wait for the clock.
@example(dice=Dice(2452), length=48, shards=1, tasks=1)
# Two sources report other ends of a queue at one time.
@example(dice=Dice(972), length=38, shards=1, tasks=1)
def test_rows_do_not_depend_on_how_the_input_was_cut(dice: Dice, length: int, shards: int, tasks: int) -> None:
    stream = dice.stream(length)
    first = run(coordinator, dice.cut(stream))
    second = run(coordinator, dice.cut(stream), shards=shards, tasks=tasks, ahead=FAR + 10**6)
    assert finish(first) == finish(second)


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(dice=dice, length=st.integers(10, 120), shards=st.integers(1, 3))
# A group is deleted, and made again within one batch: ends from before its first commit are not its own.
@example(dice=Dice(265), length=33, shards=1)
# The same, with an end at the time of that commit.
@example(dice=Dice(114), length=114, shards=1)
def test_standstills_do_not_depend_on_how_the_input_was_cut(dice: Dice, length: int, shards: int) -> None:
    stream = dice.standstill(length)
    first, second = run(coordinator, [stream]), run(coordinator, dice.cut(stream), shards=shards)
    assert finish(first) == finish(second)


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@example(dice=Dice(136847), length=105, shards=1)
@given(dice=dice, length=st.integers(10, 120), shards=st.integers(1, 3))
def test_commits_that_go_back_do_not_depend_on_how_the_input_was_cut(dice: Dice, length: int, shards: int) -> None:
    stream = dice.commits(length)
    first, second = run(coordinator, [stream]), run(coordinator, dice.cut(stream), shards=shards)
    assert finish(first) == finish(second)


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(dice=dice, length=lengths, before=st.integers(1, 3), after=st.integers(1, 3), flush=st.booleans())
def test_a_state_that_moves_to_another_shard_count_continues_as_if_undisturbed(
    dice: Dice, length: int, before: int, after: int, flush: bool
) -> None:
    stream = dice.stream(length)
    place = dice.randrange(length + 1)
    first, second = dice.cut(stream[:place]), stream[place:]
    undisturbed = run(coordinator, first, shards=before)
    source = run(coordinator, first, shards=before)
    if flush:  # Events after this point may be late, in both cuts.
        undisturbed.batch(flush=True)
        source.batch(flush=True)
    target, exported = moved(source, after)
    assert target.batch(*exported) == []
    target.rows = list(source.rows)
    target.batch(*second)
    undisturbed.batch(*second)
    assert finish(target) == finish(undisturbed)
