"""Each kind of finding names the queues, members, clients and subscriptions that it speaks of, and stays current."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.udfs.group.group_script import Script, assigned
from tests.udfs.group.record_script import RecordScript
from udfs.group.batch.findings import RULES, STUCK
from udfs.group.batch.observed_findings import OBSERVED
from udfs.group.members.duplicate_instances import DUPLICATE_INSTANCE
from udfs.model.events import Observation
from udfs.model.finding_names import MAX_NAMED
from udfs.model.journal import FindingChanged, FindingOpened

# They speak of events, generations and polls, of no queue or member.
OF_NONE = {"events_late", "generations_missed", "changes_missed", "static_topic", "unreadable_nodes"}
# Their detail is the source's: the members in it are unknown, or all of them.
OF_UNKNOWN = {"members_unseen", "subscriptions_flap"}


def no_common_strategy() -> Script:
    script = Script()
    script.queues(0, "t", 2)
    script.join(10, "a", strategies=("range",), client_id="one", host="/h1")
    script.join(10, "b", strategies=("roundrobin",))
    return script


def other_owners() -> Script:
    script = Script()
    script.queues(0, "t", 4)
    script.snapshot(10, 1, {"a": ["t"], "b": ["t"]}, assigned(a="0 2", b="1 3"), strategy="range")
    return script


def other_reports() -> Script:
    script = Script("rocketmq")
    script.queues(0, "t", 2)
    script.poll(10, "a", "b")
    for at in (20, 30):
        script.holds(at, "a", [("t", 1)])
        script.holds(at, "b", [("t", 0)])
    return script


def one_id_twice() -> Script:
    script = Script("rocketmq")
    script.queues(0, "t", 4)
    script.poll(10, ("a", "h:1"), ("a", "h:2"))
    return script


def two_strategies() -> Script:
    script = Script("rocketmq")
    script.queues(0, "t", 4)
    script.join(10, "a", strategies=("AVG",))
    script.join(10, "b", strategies=("AVG_BY_CIRCLE",))
    script.join(10, "c", strategies=("AVG",))
    return script


def two_subscriptions() -> Script:
    script = Script("rocketmq")
    script.queues(0, "t", 4)
    script.queues(0, "u", 2)
    script.snapshot(10, None, {"a": ("t", "u"), "b": ("t",), "c": ("t", "u")}, describe={"b": {"host": "10.6.1.243:5"}})
    return script


def crash_loop() -> Script:
    script = Script(flapping_after_ms=0)
    script.queues(0, "t", 2)
    script.join(0, "a", session_timeout_ms=10**9)
    for number in range(8):
        at = 600_000 + 20_000 * number
        script.join(at, f"b-{number}", client_id="b", host="/10.0.0.7", session_timeout_ms=10**9)
        script.leave(at + 5_000, f"b-{number}")
    return script


def three_for_two() -> Script:
    script = Script()
    script.queues(0, "t", 2)
    for member in "abc":
        script.join(10, member)
    return script


def reconciles() -> Script:
    script = RecordScript(stuck_after_ms=1_000)
    script.first_member()
    script.member(30, "b")
    script.epoch(30, 2)
    script.target(40, 2, {"a": "0 1", "b": "2 3"})
    script.current(40, "b", 2, "", "unreleased")
    script.current(50, "a", 1, "0 1", "unrevoked", "2 3")
    return script


def taken_back_and_forth() -> Script:
    script = Script()
    script.queues(0, "t", 2)
    for number in range(4):
        describe = {f"i{number}": {"instance_id": "i", "host": f"/10.0.0.{1 + number % 2}"}}
        script.snapshot(10 + 1_000 * number, 1, {f"i{number}": ["t"]}, assigned(**{f"i{number}": "0 1"}), describe)
    return script


def observed(kind: str) -> Script:
    script = Script("rocketmq")
    script.queues(0, "t", 2)
    script.poll(10, ("a", "h:1"), "b", observations=(Observation(kind=kind, detail="x", members=("a",)),))
    return script


def named(*fields: Any) -> dict[str, Any]:
    return dict(zip(("queues", "members", "clients", "subscriptions"), fields, strict=False))


TWO = {"a", "b"}
# By kind: a group that has it, what it names, and a part of its sentence.
KINDS: dict[str, list[tuple[Callable[[], Script], dict[str, Any], str]]] = {
    "strategy_failed": [(no_common_strategy, named((), TWO, {"one@h1", "b"}), "range (one@h1); roundrobin (b)")],
    "expected_differs": [
        (other_owners, named({"t-1", "t-2"}), "computes: t-1: b instead of a; t-2: a instead of b (generation 1)."),
        (other_reports, named({"t-0", "t-1"}), "computes: t-0: b instead of a; t-1: a instead of b."),
    ],
    "duplicate_ids": [
        (one_id_twice, named((), {"a", "a#2"}, {"a@h"}), "client id, a: they own the same queues: a (h:1)")
    ],
    "strategies_differ": [
        (two_strategies, named((), {"a", "b", "c"}, {"a", "b", "c"}), "AVG (a and c); AVG_BY_CIRCLE (b)")
    ],
    "subscriptions_differ": [
        (
            two_subscriptions,
            named((), (), (), {("t",): ("b",), ("t", "u"): ("a", "c")}),
            "b@10.6.1.243 to t; a and c to t and u.",
        )
    ],
    "unassigned_queues": [
        (
            two_subscriptions,
            named({"u-1"}),
            "u-1. AVG assigns it to b@10.6.1.243, which does not subscribe to u. It follows from subscriptions_differ.",
        ),
        (one_id_twice, named({"t-2", "t-3"}), "t-2 and -3. It follows from duplicate_ids."),
    ],
    "flapping": [(crash_loop, named((), (), {"b@10.0.0.7"}), "b@10.0.0.7 caused")],
    "idle_members": [(three_for_two, named((), {"c"}, {"c"}), "1 of 3 members owns no queue: c.")],
    STUCK: [(reconciles, named((), TWO, TWO), "a has yet to revoke t-2, t-3")],
    DUPLICATE_INSTANCE: [(taken_back_and_forth, named((), {"i0", "i1", "i2", "i3"}, {"i"}), "Instance i")],
} | {
    kind: [(lambda kind=kind: observed(kind), named((), {"a"}, {"a@h"}), "x")]  # type: ignore[misc]
    for kind in OBSERVED.keys() - OF_NONE - OF_UNKNOWN
}
CASES = [(kind, *case) for kind, cases in sorted(KINDS.items()) for case in cases]


def written(script: Script, kind: str) -> list[Any]:
    return [body for body in script.bodies(FindingOpened, FindingChanged) if body.finding == kind]


def names_of(body: Any) -> dict[str, Any]:
    return named(
        {f"{queue.topic}-{queue.queue_id}" for queue in body.queues},
        {member.member_id for member in body.members},
        {client.client for client in body.clients},
        {subscription.topics: subscription.members for subscription in body.subscriptions},
    )


def test_every_kind_is_in_the_table() -> None:
    all_kinds = {kind for kind, _ in RULES} | {"events_late", STUCK, DUPLICATE_INSTANCE, *OBSERVED}
    assert KINDS.keys() | OF_NONE | OF_UNKNOWN == all_kinds


@pytest.mark.parametrize(
    ("kind", "group", "names", "sentence"), CASES, ids=[f"{case[0]}-{case[1].__name__}" for case in CASES]
)
def test_a_finding_names_what_it_speaks_of(
    kind: str, group: Callable[[], Script], names: dict[str, Any], sentence: str
) -> None:
    script = group()
    script.run(10_000_000)
    body = written(script, kind)[-1 if kind == "flapping" else 0]
    found = names_of(body)
    for field, expected in names.items():
        assert found[field] == (expected or type(found[field])()), field
    assert sentence in body.message


def test_a_flapping_group_counts_the_rebalances_of_each_client() -> None:
    script = crash_loop()
    script.run(10_000_000)
    opened, *later = written(script, "flapping")
    assert later, "each further rebalance makes it current"
    last = later[-1]
    number = int(last.message.split(" ")[0])
    assert [(client.client, client.rebalances) for client in last.clients] == [("b@10.0.0.7", number)]
    assert f"b@10.0.0.7 caused {number} of {number}." in last.message
    assert last.message.endswith("It is an episode, same_client_again.")
    assert opened.finding_id == last.finding_id


@pytest.mark.parametrize(("after", "message"), [(10, "10 queues have no owner"), (2, "1 queue has no owner")])
def test_the_number_of_an_open_finding_is_current(after: int, message: str) -> None:
    script = Script("rocketmq")
    script.queues(1_000, "t", 2)
    script.snapshot(2_000, None, {"m@1": ("t",), "m@2": ()})
    script.run(3_000)
    script.queues(50_000, "t", 20 if after == 10 else 2)
    script.run(60_000)
    opened, *changed = written(script, "unassigned_queues")
    assert opened.message.startswith("1 queue has no owner, and nobody consumes it: t-1. AVG assigns it to m@2, which")
    last = changed[-1] if changed else opened
    assert last.message.startswith(message)
    assert len(last.queues) == after // 2 * 2 - after % 10 // 2
    # What says the same is not written again: a poll without a change, and a rebalance without another queue.
    for at in (70_000, 80_000):
        script.snapshot(at, None, {"m@1": ("t",), "m@2": ()})
    script.settings(90_000, strategy_settings={"x": 1})
    script.run(100_000)
    assert written(script, "unassigned_queues") == [opened, *changed]
    assert script.findings() == ["unassigned_queues 2000.."]


def shrinking(clocks: Sequence[int]) -> Script:
    """Have twelve members of four queues become nine, cut into batches at these clocks."""
    script = Script()
    script.queues(0, "t", 4)
    for number in range(12):
        script.join(10, f"m{number:02}", session_timeout_ms=10**9)
    for number in range(3):
        script.leave(1_000 * (number + 1), f"m{11 - number:02}")
    for clock in clocks:
        script.run(clock)
    return script


def test_the_number_of_idle_members_is_current_however_the_events_are_cut() -> None:
    script = shrinking([9_000])
    numbers = [body.message.partition(" own")[0] for body in written(script, "idle_members")]
    assert numbers == ["8 of 12 members", "7 of 11 members", "6 of 10 members", "5 of 9 members"]
    assert shrinking([11, 500, 1_001, 1_002, 2_500, 9_000]).written == script.written


def test_the_names_of_a_finding_are_bounded() -> None:
    script = Script()
    script.queues(0, "t", 1)
    for number in range(MAX_NAMED + 21):
        script.join(10, f"m{number:03}", client_id=f"c{number:03}", host="/h")
    script.run(20)
    [body] = written(script, "idle_members")
    assert (len(body.members), body.members_left_out, len(body.clients)) == (MAX_NAMED, 20, MAX_NAMED)
    assert (
        body.message
        == f"{MAX_NAMED + 20} of {MAX_NAMED + 21} members own no queue: c001@h, c002@h, c003@h and 67 more."
    )
