"""Core: which client library assigned a generation of Kafka's classic protocol, and the assignment it computes. No I/O.

The monitor computes the assignment of every library that the records allow, in every version whose assignments are
known to differ. A library that gives exactly the reported assignment is assumed to be the one that assigned. If the
library is certain and its strategy is recomputed exactly in every version, a difference means that something is wrong.
Any other difference is not comparable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from udfs.group.state.group import Owners
from udfs.model.comparability import (
    LEADER_METADATA_STALE,
    LIBRARY_NOT_RECOMPUTED,
    LIBRARY_UNKNOWN,
    LIBRARY_VERSION_UNKNOWN,
    NOT_RECOMPUTABLE,
)
from udfs.model.errors import StrategyError
from udfs.strategies.kafka.client_library import (
    AIOKAFKA,
    ANY_TAKEN_BACK,
    FRANZ_GO,
    JAVA,
    KAFKA_PYTHON,
    LIBRDKAFKA,
    LISTS_DIFFER,
    RACKS_IGNORED,
    Library,
    library_of,
    possible_libraries,
    variants,
)
from udfs.strategies.kafka.range import has_near_queues
from udfs.strategies.problem import Assignment, Problem

RANGE, ROUNDROBIN, STICKY, COOPERATIVE = (
    "kafka.range",
    "kafka.roundrobin",
    "kafka.sticky",
    "kafka.cooperative-sticky",
)
DEPENDS_ON_LIBRARY = frozenset({RANGE, ROUNDROBIN, STICKY, COOPERATIVE})
# The sticky assignors of kafka-clients were compared with the real classes: from 3.7.1 on they agree in all cases. Each
# version from 3.4 to 3.7.0 has a general path of its own, uses racks differently, or settles claims differently.
_EXACT_STICKY_SINCE, _EXACT_IN_PLAIN_CASES_SINCE = (3, 7, 1), (3, 4)
# librdkafka reports its version since 2.2; before 1.6 roundrobin, and before 1.5 every assignor, was wrong in some
# cases.
_EXACT_RDKAFKA_SINCE = (2, 2)


class LibraryChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The assignment computed by the library that assigned.

    Attributes:
        library: Its name; None if unknown. incomparable: Why the assignment cannot be compared; None if it can be.
    """

    assignment: Assignment
    library: str | None
    incomparable: str | None = None


def choose(
    strategy: str,
    problem: Problem,
    compute: Callable[[Problem], Assignment],
    owners: Callable[[Assignment], Owners],
    reported: Owners | None,
) -> LibraryChoice:
    """Compute a generation with each library that may have assigned it.

    Args:
        owners: Converts an assignment into the form of ``reported``, the reported assignment, so that both can be
            compared.
    Raises:
        StrategyError: The only possible library fails.
    """
    libraries = possible_libraries(problem)
    names = [name for library in libraries for name in variants(library)]
    is_reported = libraries != [JAVA]
    label = libraries[0] if len(libraries) == 1 and is_reported else None
    assignments: dict[str, Assignment] = {}
    found: dict[str, Owners] = {}
    failures: list[StrategyError] = []
    for name in names:
        try:
            assignments[name] = compute(as_library(problem, name))
        except StrategyError as error:
            failures.append(error)
            continue
        if reported is None:
            return LibraryChoice(assignment=assignments[name], library=label)
        found[name] = owners(assignments[name])
        if found[name] == reported:
            shown = label if name == names[0] and len(libraries) == 1 else _plain(name)
            return LibraryChoice(assignment=assignments[name], library=shown)
    if len(failures) == len(names) and failures[0].code != NOT_RECOMPUTABLE:
        raise failures[0]
    if reported is not None and is_reported and _is_stale(problem, list(found), compute, owners, reported):
        return LibraryChoice(assignment=assignments[names[0]], library=label, incomparable=LEADER_METADATA_STALE)
    first = found.get(names[0])
    versions_agree = all(assignment == first for name, assignment in found.items() if _is_of_a_version(name))
    agree = versions_agree if len(libraries) == 1 else all(assignment == first for assignment in found.values())
    if agree and not failures and all(_is_exact(name, strategy, problem) for name in names):
        return LibraryChoice(assignment=assignments[names[0]], library=label)
    of_version = LIBRARY_NOT_RECOMPUTED if versions_agree else LIBRARY_VERSION_UNKNOWN
    reason = of_version if len(libraries) == 1 else LIBRARY_UNKNOWN
    return LibraryChoice(assignment={}, library=label, incomparable=reason)


def _plain(name: str) -> str:
    return name.removesuffix(LISTS_DIFFER).removesuffix(RACKS_IGNORED).removesuffix(ANY_TAKEN_BACK)


def _is_of_a_version(name: str) -> bool:
    """Return whether this older version was read as source and, unlike Java's, not compared with real results."""
    library = library_of(name)
    return library.name != JAVA and not library.lists_differ and not library.racks_ignored


def as_library(problem: Problem, name: str) -> Problem:
    """Return the problem as this library sees it."""
    return msgspec.structs.replace(problem, settings={**problem.settings, "library": name})


def _is_exact(name: str, strategy: str, problem: Problem) -> bool:
    """Return whether the result computed here is certainly the one that the library assigns."""
    library = library_of(name)
    if library.name in (LIBRDKAFKA, FRANZ_GO) and strategy != ROUNDROBIN and has_near_queues(problem):
        return False  # no results of real clients with racks are recorded
    if library.name == LIBRDKAFKA:
        return _is_exact_librdkafka(library, strategy, problem)
    if strategy in (RANGE, ROUNDROBIN):
        return True
    if library.name in (KAFKA_PYTHON, AIOKAFKA):
        # These libraries take partitions claimed in two generations in set order, which is arbitrary.
        return len({member.generation for member in problem.members if member.owned}) <= 1
    if library.is_since(_EXACT_STICKY_SINCE):
        return library.name == JAVA
    is_plain = _has_equal_subscriptions(problem) and not has_near_queues(problem) and not _is_claimed_twice(problem)
    return library.name == JAVA and library.is_since(_EXACT_IN_PLAIN_CASES_SINCE) and is_plain


def _is_exact_librdkafka(library: Library, strategy: str, problem: Problem) -> bool:
    is_new = library.is_since(_EXACT_RDKAFKA_SINCE)
    if strategy not in (RANGE, ROUNDROBIN):
        return strategy == COOPERATIVE and is_new and not _is_claimed_twice(problem)
    if len({member.instance_id is None for member in problem.members}) > 1:
        return False  # its comparison is not a consistent order, so the C library's sort decides the order
    return is_new or (_has_equal_subscriptions(problem) and len(problem.topics) <= len(problem.members))


def _has_equal_subscriptions(problem: Problem) -> bool:
    return len({frozenset(member.subscriptions) for member in problem.members}) <= 1


def _is_claimed_twice(problem: Problem) -> bool:
    """Return whether two members claim a queue."""
    claimed = [queue for member in problem.members for queue in set(member.owned or ())]
    return len(set(claimed)) < len(claimed)


def _is_stale(
    problem: Problem,
    names: Sequence[str],
    compute: Callable[[Problem], Assignment],
    owners: Callable[[Assignment], Owners],
    reported: Owners,
) -> bool:
    """Return whether the reported assignment is the one a leader computes when it has no metadata of some topics.

    A kafka-python consumer reports an empty first generation, and joins again as soon as it has metadata.
    """
    named = {queue[0] for queue in reported}
    named_topics = {name: topic for name, topic in problem.topics.items() if name in named}
    if len(named_topics) == len(problem.topics):
        return False
    smaller = msgspec.structs.replace(problem, topics=named_topics)
    for name in names:
        try:
            if owners(compute(as_library(smaller, name))) == reported:
                return True
        except StrategyError:
            continue
    return False
