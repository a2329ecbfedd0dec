"""Which client library assigned a generation."""

import msgspec
import pytest

from tests.udfs.strategies.groups import group
from udfs.group.assignment.library_choice import LibraryChoice, choose
from udfs.group.state.assignment_diff import owners_of
from udfs.group.state.group import Owners
from udfs.model.comparability import LEADER_METADATA_STALE, LIBRARY_NOT_RECOMPUTED, LIBRARY_UNKNOWN
from udfs.model.errors import StrategyError
from udfs.strategies.problem import Assignment, Problem
from udfs.strategies.registry import strategy

TOLD = {
    # A dynamic member "a" and a static one "b": kafka-clients puts the static one first.
    "static first": {"a": [3, 4], "b": [0, 1, 2]},
    "by id": {"a": [0, 1, 2], "b": [3, 4]},
    "none": {"a": [0, 4], "b": [1, 2, 3]},
}


def owners(found: Assignment) -> Owners:
    return owners_of({member: [(ref.topic, None, ref.queue_id) for ref in refs] for member, refs in found.items()})


def reported_as(name: str) -> Owners:
    return owners_of({member: [("t", None, number) for number in numbers] for member, numbers in TOLD[name].items()})


def chosen(
    library: str | None, told: Owners | None, *, name: str = "kafka.range", topics: dict[str, int] | None = None
) -> LibraryChoice:
    names = topics or {"t": 5}
    settings = {} if library is None else {"library": library}
    problem = group({"a": list(names), "b": list(names)}, names, settings=settings)
    first, second = problem.members
    problem = msgspec.structs.replace(problem, members=(first, msgspec.structs.replace(second, instance_id="i")))
    return choose(name, problem, strategy(name, "kafka"), owners, told)


@pytest.mark.parametrize(
    ("library", "told", "shown", "incomparable", "differs"),
    [
        ("java-3.4+", "static first", "java-3.4+", None, False),
        ("java-3.4+", "by id", "java-3.4+", None, True),
        ("aiokafka", "by id", "aiokafka", None, False),
        ("aiokafka", "static first", "aiokafka", None, True),
        ("java-2.4+|sarama", "static first", "java-2.8", None, False),
        ("java-2.4+|sarama", "by id", "sarama", None, False),
        ("java-2.4+|sarama", "none", None, LIBRARY_UNKNOWN, True),
        # All that are possible assign alike: it does not matter which.
        ("aiokafka|sarama", "by id", "aiokafka", None, False),
        ("aiokafka|sarama", "static first", None, None, True),
        (None, "by id", None, None, True),
        (None, "static first", None, None, False),
    ],
)
def test_the_library_that_explains_the_report_is_taken(
    library: str | None, told: str, shown: str | None, incomparable: str | None, differs: bool
) -> None:
    choice = chosen(library, reported_as(told))
    assert (choice.library, choice.incomparable) == (shown, incomparable)
    assert (owners(choice.assignment) != reported_as(told)) == differs


def test_without_a_report_the_likeliest_is_computed() -> None:
    choice = chosen("aiokafka|java-2.4+", None)
    assert (choice.library, choice.incomparable) == (None, None)
    assert owners(choice.assignment) == reported_as("by id")


def test_a_library_with_an_algorithm_of_its_own_is_not_recomputed() -> None:
    choice = chosen("franz-go", reported_as("by id"), name="kafka.sticky")
    assert choice == LibraryChoice(assignment={}, library="franz-go", incomparable=LIBRARY_NOT_RECOMPUTED)


def test_a_leader_without_metadata_of_a_topic_leaves_it_out() -> None:
    topics = {"t": 5, "u": 2}
    for library in ("kafka-python", "kafka-python|java-3.4+"):
        choice = chosen(library, reported_as("static first"), topics=topics)
        assert choice.incomparable == LEADER_METADATA_STALE
        assert len(owners(choice.assignment)) == 7
    assert chosen("kafka-python", {}, topics=topics).incomparable == LEADER_METADATA_STALE
    # It assigns what it leaves in otherwise than computed: that is something else.
    assert chosen("kafka-python", reported_as("none"), topics=topics).incomparable is None
    # Where no library is reported, members' own reports count.
    assert chosen(None, reported_as("static first"), topics=topics).incomparable is None


def test_a_failure_of_the_only_library_is_the_strategys() -> None:
    def fails(problem: Problem) -> Assignment:
        raise StrategyError("illegal_state", "no")

    with pytest.raises(StrategyError, match="no"):
        choose("kafka.sticky", group({"a": ["t"]}, {"t": 1}), fails, owners, reported_as("none"))
