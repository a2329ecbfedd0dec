"""Which release's assignor gave a target: reported, or found by computing each."""

from __future__ import annotations

from tests.udfs.group.record_script import RecordScript
from udfs.model.events import GroupSettings

# "new" comes before "old" in a HashMap: of one partition, releases before 4.0.1 give it to the first.
_OLD, _NEW = "X0yAFF_qm7EtmX5_lo5zlw", "9ijPW6YFdNnlURkCf1THSw"


def joined(taker: str, coordinator: str | None = None, assignor: str | None = None) -> RecordScript:
    """Play a group of one partition, that of ``old``, which ``new`` joins; ``taker`` gets it."""
    script = RecordScript(partitions=1)
    if coordinator is not None:
        script.event(GroupSettings, 5, strategy_settings={"coordinator": coordinator})
    script.member(10, _OLD, assignor=assignor)
    script.epoch(10, 1)
    script.target(10, 1, {_OLD: "0"})
    script.current(10, _OLD, 1, "0")
    epoch(script, 20, 2, taker, _NEW, assignor)
    return script


def epoch(script: RecordScript, at: int, number: int, taker: str, member: str, assignor: str | None = None) -> None:
    """Have a member join and the target of the next epoch give the partition to ``taker``."""
    script.member(at, member, assignor=assignor)
    script.epoch(at, number)
    script.target(at, number, {one: "0" if one == taker else "" for one in {_OLD, _NEW, member}})
    for one in sorted({_OLD, _NEW, member}, key=lambda one: one == taker):
        script.current(at + 1, one, number, "0" if one == taker else "")


def last_audit(script: RecordScript) -> tuple[str, str | None, str | None]:
    found = script.audits()[-1]
    return found.verdict, found.reason, found.library


def test_a_target_of_an_older_release_agrees_and_names_the_inferred_one() -> None:
    for assignor in ("server.uniform", None):
        script = joined(_NEW, assignor=assignor)
        script.run(60)
        assert last_audit(script) == ("agrees", None, "inferred: kafka-4.0.0")
        assert script.rebalances[-1].strategy == "kafka.server.uniform"
        assert "strategy_changed" not in [one.kind for one in script.rebalances[-1].triggers]


def test_todays_target_names_no_release() -> None:
    script = joined(_OLD)
    script.run(60)
    assert last_audit(script) == ("agrees", None, None)


def test_a_reported_release_is_not_inferred() -> None:
    script = joined(_NEW, "4.0.0")
    script.run(60)
    assert last_audit(script) == ("agrees", None, "kafka-4.0.0")


def test_an_older_release_than_the_reported_one_is_not_tried() -> None:
    script = joined(_NEW, "4.1.1", "server.uniform")
    script.run(60)
    assert last_audit(script)[0] == "differs"


def test_a_broker_that_was_upgraded_while_its_group_lives_agrees_before_and_after() -> None:
    script = joined(_NEW)
    script.run(60)
    epoch(script, 70, 3, _NEW, "zz")  # the first of a HashMap: 4.0.0 would give it the partition
    script.run(90)
    assert [row.agrees for row in script.rebalances] == [True, True, True]
    assert last_audit(script) == ("agrees", None, "inferred: kafka-4.0.1+")
