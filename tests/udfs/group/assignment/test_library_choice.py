"""Which client library assigned a generation."""

import msgspec
import pytest

from tests.udfs.strategies.groups import group, in_racks, queue
from udfs.group.assignment.library_choice import LibraryChoice, choose
from udfs.group.state.assignment_diff import owners_of
from udfs.group.state.group import Owners
from udfs.model.comparability import (
    LEADER_METADATA_STALE,
    LIBRARY_NOT_RECOMPUTED,
    LIBRARY_UNKNOWN,
    LIBRARY_VERSION_UNKNOWN,
)
from udfs.model.errors import StrategyError
from udfs.strategies.problem import Assignment, Problem
from udfs.strategies.registry import strategy

REPORTED = {
    # A dynamic member "a" and a static one "b": kafka-clients puts the static one first.
    "static first": {"a": [3, 4], "b": [0, 1, 2]},
    "by id": {"a": [0, 1, 2], "b": [3, 4]},
    "none": {"a": [0, 4], "b": [1, 2, 3]},
}


def owners(found: Assignment) -> Owners:
    return owners_of({member: [(ref.topic, None, ref.queue_id) for ref in refs] for member, refs in found.items()})


def reported_as(name: str) -> Owners:
    return owners_of(
        {member: [("t", None, number) for number in numbers] for member, numbers in REPORTED[name].items()}
    )


def chosen(
    library: str | None, given: Owners | None, *, name: str = "kafka.range", topics: dict[str, int] | None = None
) -> LibraryChoice:
    names = topics or {"t": 5}
    settings = {} if library is None else {"library": library}
    problem = group({"a": list(names), "b": list(names)}, names, settings=settings)
    first, second = problem.members
    problem = msgspec.structs.replace(problem, members=(first, msgspec.structs.replace(second, instance_id="i")))
    return choose(name, problem, strategy(name, "kafka"), owners, given)


@pytest.mark.parametrize(
    ("library", "given", "shown", "incomparable", "differs"),
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
        ("aiokafka|kafka-python-2.2", "static first", None, None, True),
        # kafka-python puts static members first since 2.3.
        ("kafka-python", "static first", "kafka-python", None, False),
        ("kafka-python", "by id", "kafka-python-2.2", None, False),
        ("kafka-python", "none", "kafka-python", LIBRARY_VERSION_UNKNOWN, True),
        # Its order is none where static and dynamic members mix.
        ("librdkafka", "none", "librdkafka", LIBRARY_NOT_RECOMPUTED, True),
        (None, "by id", None, None, True),
        (None, "static first", None, None, False),
    ],
)
def test_the_library_that_explains_the_report_is_taken(
    library: str | None, given: str, shown: str | None, incomparable: str | None, differs: bool
) -> None:
    choice = chosen(library, reported_as(given))
    assert (choice.library, choice.incomparable) == (shown, incomparable)
    assert (owners(choice.assignment) != reported_as(given)) == differs


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
    assert chosen("aiokafka", reported_as("none"), topics=topics).incomparable is None
    # Where no library is reported, members' own reports count.
    assert chosen(None, reported_as("static first"), topics=topics).incomparable is None


def verdict_of(problem: Problem, name: str, given: dict[str, str]) -> tuple[str | None, str | None, bool]:
    """Return the library, why it is incomparable, and whether what it assigns is what is reported."""
    reported = owners({member: [queue(text) for text in held.split()] for member, held in given.items()})
    choice = choose(name, problem, strategy(name, "kafka"), owners, reported)
    return choice.library, choice.incomparable, owners(choice.assignment) == reported


@pytest.mark.parametrize(
    ("library", "held", "verdict"),
    [
        # By racks, without them, and neither of both.
        ("librdkafka", ["t-1 t-3", "t-0 t-2"], ("librdkafka", None, True)),
        ("librdkafka", ["t-0 t-1", "t-2 t-3"], ("librdkafka", None, True)),
        ("librdkafka", ["t-0 t-3", "t-1 t-2"], ("librdkafka", LIBRARY_NOT_RECOMPUTED, False)),
        ("librdkafka-2.1", ["t-0 t-1", "t-2 t-3"], ("librdkafka-2.1", None, True)),
        ("franz-go", ["t-1 t-3", "t-0 t-2"], ("franz-go", LIBRARY_NOT_RECOMPUTED, False)),
        ("java-3.4+", ["t-1 t-3", "t-0 t-2"], ("java-3.4+", None, True)),
        ("java-3.4+", ["t-0 t-1", "t-2 t-3"], ("java-3.4", None, True)),
        ("java-3.4+", ["t-0 t-3", "t-1 t-2"], ("java-3.4+", None, False)),
    ],
)
def test_a_difference_by_racks_counts_where_racks_are_recomputed_exactly(
    library: str, held: list[str], verdict: tuple[str | None, str | None, bool]
) -> None:
    problem = group({"a": ["t"], "b": ["t"]}, {"t": 4}, settings={"library": library})
    problem = in_racks(problem, ["r1", "r0"], 2)
    assert verdict_of(problem, "kafka.range", dict(zip("ab", held, strict=True))) == verdict


def test_librdkafka_without_racks_is_recomputed_exactly() -> None:
    problem = group({"a": ["t"], "b": ["t"]}, {"t": 4}, settings={"library": "librdkafka"})
    assert verdict_of(problem, "kafka.range", {"a": "t-1 t-3", "b": "t-0 t-2"}) == ("librdkafka", None, False)


def test_a_difference_counts_where_all_versions_give_the_same() -> None:
    # By the hash of topic and id "M1" comes before "M2", too.
    problem = group({"M1": ["T1"], "M2": ["T1"]}, {"T1": 5}, settings={"library": "sarama"})
    assert verdict_of(problem, "kafka.range", {"M1": "T1-0 T1-1 T1-2", "M2": "T1-3 T1-4"}) == ("sarama", None, True)
    assert verdict_of(problem, "kafka.range", {"M1": "T1-0 T1-1", "M2": "T1-2 T1-3 T1-4"}) == ("sarama", None, False)


def test_versions_of_sarama_explain_what_they_assign() -> None:
    members = {"M1": ["T1", "T2"], "M2": ["T1", "T2"]}
    problem = group(members, {"T1": 4, "T2": 4}, settings={"library": "sarama"})
    older = {"M1": "T1-0 T1-1 T2-2 T2-3", "M2": "T1-2 T1-3 T2-0 T2-1"}
    assert verdict_of(problem, "kafka.range", older) == ("sarama-1.33", None, True)
    neither = {"M1": "T1-0 T2-0", "M2": "T1-1 T1-2 T1-3 T2-1 T2-2 T2-3"}
    assert verdict_of(problem, "kafka.range", neither) == ("sarama", LIBRARY_VERSION_UNKNOWN, False)
    alternating = {"M1": "T1-0 T1-2 T2-1 T2-3", "M2": "T1-1 T1-3 T2-0 T2-2"}
    assert verdict_of(problem, "kafka.roundrobin", alternating) == ("sarama-1.27", None, True)


@pytest.mark.parametrize(
    ("library", "claims", "incomparable"),
    [
        ("librdkafka", {"a": "t-0 t-1"}, None),
        ("librdkafka", {"a": "t-0 t-1", "b": "t-0"}, LIBRARY_NOT_RECOMPUTED),
        ("librdkafka-2.1", {"a": "t-0 t-1"}, LIBRARY_NOT_RECOMPUTED),
        ("java-3.4+", {"a": "t-0 t-1"}, None),
        ("java-3.4+", {"a": "t-0 t-1", "b": "t-0"}, LIBRARY_NOT_RECOMPUTED),
        ("java-4.1", {"a": "t-0 t-1", "b": "t-0"}, None),
        ("java-3.2+", {"a": "t-0 t-1"}, LIBRARY_NOT_RECOMPUTED),
        ("java-2.4+", {"a": "t-0 t-1"}, LIBRARY_NOT_RECOMPUTED),
    ],
)
def test_cooperative_sticky_is_exact_where_all_versions_were_compared(
    library: str, claims: dict[str, str], incomparable: str | None
) -> None:
    owned = {member: held.split() for member, held in claims.items()}
    problem = group({"a": ["t"], "b": ["t"]}, {"t": 6}, owned=owned, settings={"library": library})
    given = {"a": "t-5", "b": "t-0 t-1 t-2 t-3 t-4"}
    assert verdict_of(problem, "kafka.cooperative-sticky", given)[1] == incomparable


def test_older_versions_of_java_have_other_general_paths() -> None:
    given = {"a": "t-1", "b": "t-0 u-0 u-1"}
    for library, incomparable in (("java-3.4+", LIBRARY_NOT_RECOMPUTED), ("java-3.9", None)):
        problem = group({"a": ["t"], "b": ["t", "u"]}, {"t": 2, "u": 2}, settings={"library": library})
        assert verdict_of(problem, "kafka.sticky", given | {"a": "", "b": "t-0 t-1 u-0 u-1"})[1] == incomparable


@pytest.mark.parametrize(
    ("subscriptions", "incomparable"),
    [({"a": ["t"], "b": ["t"]}, None), ({"a": ["t"], "b": ["t", "u"]}, LIBRARY_NOT_RECOMPUTED)],
)
def test_an_older_librdkafka_is_exact_where_subscriptions_are_equal(
    subscriptions: dict[str, list[str]], incomparable: str | None
) -> None:
    topics = {name: 4 for names in subscriptions.values() for name in names}
    problem = group(subscriptions, topics, settings={"library": "librdkafka-2.1"})
    assert verdict_of(problem, "kafka.roundrobin", {"a": "t-0 t-1", "b": "t-2"})[1] == incomparable


def test_a_failure_of_the_only_library_is_the_strategys() -> None:
    def fails(problem: Problem) -> Assignment:
        raise StrategyError("illegal_state", "no")

    with pytest.raises(StrategyError, match="no"):
        choose("kafka.sticky", group({"a": ["t"]}, {"t": 1}), fails, owners, reported_as("none"))
