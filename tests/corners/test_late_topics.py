"""Law: whenever and in whichever order the topics of a generation become known, its computed spans are the same.

Random histories of a coordinator: topics with racks and gaps in their numbers, strategies that start from what was
held, static members that return within the generation. Each is run with all topics known from the beginning, which is
the simple way through the core, and with them known later, in several orders and batches.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.corners.corner_run import BASE_MS, CornerRun, Cut, Event, in_one, one_by_one

_STRATEGIES = ("range", "roundrobin", "sticky", "cooperative-sticky")
_MEMBERS = ("m1", "m2", "m3", "m4", "m5")
_END: Event = {"t": 30_000, "type": "clock"}


class _History:
    """Snapshots of one group, and its topics: those known before it, and those known only after its last generation."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.racks = rng.random() < 0.6
        self.topics = {name: self._queues() for name in "ABCD"[: rng.randint(1, 4)]}
        self.early = [name for name in self.topics if rng.random() < 0.4]
        self.snapshots: list[Event] = []
        self.strategy = rng.choice(_STRATEGIES)
        self.generations = rng.randint(1, 3)
        assigned = rng.random() < 0.5
        present = rng.sample(_MEMBERS, rng.randint(1, 4))
        for number in range(self.generations):
            last = number == self.generations - 1
            self._generation(number, present, list(self.topics) if last else self.early, assigned)
            present = [
                member_id for member_id in _MEMBERS if rng.random() < (0.8 if member_id in present else 0.3)
            ] or present[:1]
        for number in range(rng.randint(0, 2)):
            self._return_of_static_members(number + 1)

    def _queues(self) -> list[Event]:
        count = self.rng.randint(1, 6)
        numbers = sorted(self.rng.sample(range(9), count)) if self.rng.random() < 0.3 else range(count)
        rack = {"rack": "x"} if self.racks else {}
        return [{"queue_id": number, **(rack and {"rack": self.rng.choice("xyz")})} for number in numbers]

    def _generation(self, number: int, present: list[str], topics: list[str], assigned: bool) -> None:
        members: list[Event] = []
        for name in present:
            static = self.rng.random() < 0.5
            member: Event = {"member_id": f"{name}-0" if static else name}
            member |= {"instance_id": name} if static else {}
            member |= {"rack": self.rng.choice("xyz")} if self.racks else {}
            members.append(member | {"subscriptions": [topic for topic in topics if self.rng.random() < 0.8]})
        snapshot: Event = {"t": 1_000 * (number + 1), "type": "group_snapshot", "group": "g", "generation": number + 3}
        snapshot |= {"strategy": self.strategy, "members": members}
        if assigned:
            held: dict[str, list[Event]] = {member["member_id"]: [] for member in members}
            for topic in topics:
                owners = [member["member_id"] for member in members if topic in member["subscriptions"]]
                for queue in self.topics[topic] if owners else ():
                    held[self.rng.choice(owners)].append({"topic": topic, "queue_id": queue["queue_id"]})
            snapshot["assignments"] = held
        self.snapshots.append(snapshot)

    def _return_of_static_members(self, number: int) -> None:
        last = self.snapshots[-1]
        names = {
            member["member_id"]: f"{member['instance_id']}-{number}"
            for member in last["members"]
            if "instance_id" in member and self.rng.random() < 0.7
        }
        again = last | {
            "t": last["t"] + self.rng.randint(1, 6_000),
            "members": [
                member | {"member_id": names.get(member["member_id"], member["member_id"])}
                for member in last["members"]
            ],
        }
        if "assignments" in last:
            again["assignments"] = {
                names.get(member_id, member_id): queues for member_id, queues in last["assignments"].items()
            }
        self.snapshots.append(again)

    def events(self, topics_at: dict[str, int]) -> list[Event]:
        reported = [
            {"t": topics_at.get(name, 0), "type": "topic_queues", "topic": name, "queues": queues}
            for name, queues in self.topics.items()
        ]
        return [*reported, *self.snapshots, _END]

    def later(self) -> dict[str, int]:
        after = 1_000 * self.generations
        at_once = after + self.rng.randint(1, 9_000)
        together = self.rng.random() < 0.3
        return {
            name: at_once if together else after + self.rng.randint(1, 9_000)
            for name in self.topics
            if name not in self.early
        }


def _outcome(events: list[Event], cut: Cut) -> dict[str, Any]:
    tables = CornerRun(events, cut).tables()
    columns = ("topic", "queue_id", "member_id", "instance_id", "valid_from", "valid_to", "generation", "rebalance_id")
    balance = ("queues", "idle_members", "unassigned_queues", "spread")
    return {
        "spans": sorted(
            [str(row[name]) for name in columns] for row in tables["assignments"] if row["origin"] == "computed"
        ),
        "group": [[row[name] for name in balance] for row in tables["groups"]],
        "findings": sorted(row["kind"] for row in tables["findings"] if row["closed_at"] is None),
    }


@pytest.mark.parametrize("seed", range(40))
def test_spans_do_not_depend_on_when_the_topics_were_reported(seed: int) -> None:
    history = _History(random.Random(seed))
    expected = _outcome(history.events({}), in_one)

    for _ in range(2):
        topics_at = history.later()
        for cut in (in_one, one_by_one):
            assert _outcome(history.events(topics_at), cut) == expected, topics_at


def _billing(topics_at: int, strategy: str = "range", assignments: Any = None) -> list[Event]:
    members = [{"member_id": name, "subscriptions": ["a", "b"]} for name in ("p", "q")]
    snapshot: Event = {"t": 1_000, "type": "group_snapshot", "group": "g", "generation": 2, "strategy": strategy}
    snapshot |= {"members": members} | ({} if assignments is None else {"assignments": assignments})
    return [
        {"t": 0, "type": "topic_queues", "topic": "a", "queue_count": 4},
        snapshot,
        {"t": topics_at, "type": "topic_queues", "topic": "b", "queue_count": 3},
    ]


def test_nothing_is_computed_while_a_topic_is_awaited() -> None:
    early, late = _billing(5_000)[:2], _billing(5_000)

    waiting = CornerRun([*early, _END]).tables()["assignments"]
    computed = CornerRun([*late, _END]).tables()["assignments"]

    assert waiting == []
    assert {(row["valid_from"] - BASE_MS, row["inferred"], row["generation"]) for row in computed} == {(1_000, True, 2)}
    assert len(computed) == 7


def test_a_topic_that_grows_before_the_others_are_reported_counts_as_it_was_reported_first() -> None:
    grown = [
        {"t": 0, "type": "topic_queues", "topic": "c", "queue_count": 1},
        *_billing(9_000)[1:],
        {"t": 4_000, "type": "topic_queues", "topic": "a", "queue_count": 2},
        {"t": 6_000, "type": "topic_queues", "topic": "a", "queue_count": 8},
    ]
    for cut in (in_one, one_by_one):
        run = CornerRun([*grown, _END], cut)
        held = sorted((row["topic"], row["queue_id"]) for row in run.tables()["assignments"])
        assert held == [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2)]


def test_an_assignment_that_differs_only_for_want_of_metadata_is_no_disagreement() -> None:
    """The coordinator's range knows seven partitions; the monitor knows three of them, from the assignment alone.

    Nor is one that equals what is computed from these an agreement, until metadata has come.
    """
    held = {"p": [("a", 0), ("a", 1), ("b", 0), ("b", 1)], "q": [("a", 2), ("a", 3), ("b", 2)]}
    right = {name: [{"topic": topic, "queue_id": number} for topic, number in queues] for name, queues in held.items()}
    wrong = {"p": right["q"], "q": right["p"]}
    for reported, verdict in ((right, "agrees"), (wrong, "differs")):
        for cut in (in_one, one_by_one):
            run = CornerRun([*_billing(5_000, assignments=reported), _END], cut)
            found = [(row["kind"], row["opened_at"] - BASE_MS) for row in run.tables()["findings"]]
            assert (run.core.rows()[0]["agrees"], run.core.rows()[0]["agrees_reason"]) == (None, "topics_unknown")
            assert [row["verdict"] for row in run.tables()["audits"]] == [verdict]
            assert found == ([("expected_differs", 5_000)] if verdict == "differs" else [])


def _generation(t: int, number: int, *ids: str, topics: str = "a") -> Event:
    members = [
        {"member_id": member_id, "instance_id": member_id[0], "subscriptions": list(topics)} for member_id in ids
    ]
    return {"t": t, "type": "group_snapshot", "group": "g", "generation": number, "strategy": "range"} | {
        "members": members
    }


# Events before the generation at 2 s of a group whose second topic becomes known late, and that generation itself.
_OF_ONE_TIME = {
    "an empty generation between": [
        _generation(1_000, 1, "p-1"),
        _generation(2_000, 2),
        _generation(2_000, 3, "p-1", "q-1", topics="ab"),
    ],
    "a generation between that hands on": [
        _generation(1_000, 1, "p-1"),
        _generation(2_000, 2, "q-1", "r-1"),
        _generation(2_000, 3, "r-1", "p-1", topics="ab"),
    ],
    "a static member returns in the generation between": [
        _generation(1_000, 1, "p-1", "q-1"),
        _generation(2_000, 2, "p-1", "q-1"),
        _generation(2_000, 2, "z-2", "q-1"),
        _generation(2_000, 3, "z-2", "q-1", "r-1", topics="ab"),
    ],
    "a static member returns before it": [
        _generation(1_000, 1, "p-1", "q-1"),
        _generation(2_000, 1, "p-2", "q-1"),
        _generation(2_000, 2, "p-2", "q-1", topics="ab"),
    ],
    "the group was deleted before it": [
        _generation(1_000, 1, "p-1", "q-1"),
        {"t": 2_000, "type": "group_deleted", "group": "g"},
        _generation(2_000, 1, "p-1", "q-1", topics="ab"),
    ],
}


@pytest.mark.parametrize("history", _OF_ONE_TIME.values(), ids=_OF_ONE_TIME)
@pytest.mark.parametrize("cut", [in_one, one_by_one])
def test_changes_before_a_generation_with_the_same_timestamp_stay(history: list[Event], cut: Cut) -> None:
    event = {"t": 0, "type": "topic_queues", "topic": "a", "queue_count": 2}
    later = {"t": 5_000, "type": "topic_queues", "topic": "b", "queue_count": 3}

    expected = _outcome([event, later | {"t": 0}, *history, _END], cut)

    assert _outcome([event, *history, later, _END], cut) == expected


@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize("cut", [in_one, one_by_one])
def test_assigned_queues_that_the_first_metadata_lacks_are_not_in_the_next_generation(count: int, cut: Cut) -> None:
    held = {"p-1": [{"topic": "a", "queue_id": 0}, {"topic": "a", "queue_id": 1}]}
    first, second, third = (_generation(1_000 * number, number, "p-1") for number in (1, 3, 4))
    event = {"t": 2_000, "type": "topic_queues", "topic": "a", "queue_count": count}

    run = CornerRun([first | {"assignments": held}, event, second, third, _END], cut)

    rows = run.core.rows()
    assert [row["queues_after"] for row in rows] == [2, count, count]
    assert [row["trigger"] for row in rows] == ["group_created", "queue_count_changed", "unexplained"]


def test_without_the_racks_of_a_topic_nothing_is_compared() -> None:
    """Members have racks, and those of the queues come with the metadata: until then nothing is compared."""
    snapshot = {
        "t": 1_000, "type": "group_snapshot", "group": "g", "generation": 1, "state": "Stable", "strategy": "range",
        "members": [
            {"member_id": name, "client_id": name, "rack": rack, "subscriptions": ["t"], "strategies": ["range"]}
            for name, rack in (("a", "x"), ("b", "y"))
        ],
        "assignments": {"a": [{"topic": "t", "queue_id": 0}], "b": [{"topic": "t", "queue_id": 1}]},
    }  # fmt: skip
    racks = [{"queue_id": 0, "racks": ["y"]}, {"queue_id": 1, "racks": ["x"]}]
    topic = {"t": 3_000, "type": "topic_queues", "topic": "t", "queues": racks}
    run = CornerRun([snapshot, topic, {"t": 9_000, "type": "clock"}], in_one)

    [row], [audit] = run.core.rows(), run.tables()["audits"]
    assert (row["agrees"], row["agrees_reason"]) == (None, "topics_unknown")
    assert (audit["verdict"], audit["reason"]) == ("differs", "racks_ignored")
