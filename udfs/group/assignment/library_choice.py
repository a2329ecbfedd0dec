"""Core: which client library assigned a generation of Kafka's classic protocol, and what it computes. No I/O.

All libraries that the records allow are computed. One that gives exactly what was reported is taken for the one that
assigned; one that is certain, and whose strategy is recomputed exactly, may differ: then something is wrong. Whatever
else differs says nothing: the result is not comparable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from udfs.group.state.group import Owners
from udfs.model.comparability import LEADER_METADATA_STALE, LIBRARY_NOT_RECOMPUTED, LIBRARY_UNKNOWN, NOT_RECOMPUTABLE
from udfs.model.errors import StrategyError
from udfs.strategies.kafka.client_library import (
    AIOKAFKA,
    JAVA,
    KAFKA_PYTHON,
    LIBRDKAFKA,
    LISTS_DIFFER,
    library_of,
    possible_libraries,
    variants,
)
from udfs.strategies.problem import Assignment, Problem

RANGE, ROUNDROBIN, STICKY, COOPERATIVE = (
    "kafka.range",
    "kafka.roundrobin",
    "kafka.sticky",
    "kafka.cooperative-sticky",
)
DEPENDS_ON_LIBRARY = frozenset({RANGE, ROUNDROBIN, STICKY, COOPERATIVE})
# kafka-clients whose sticky assignors were compared with the real classes.
_EXACT_STICKY_SINCE = (3, 4)


class LibraryChoice(msgspec.Struct, frozen=True, kw_only=True):
    """What the library that assigned computes.

    Attributes:
        library: Its name; None: it is not known. incomparable: Why the assignment cannot be compared; None: it can.
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
    """Compute a generation as each library that may have assigned it.

    Args:
        owners: Makes of an assignment what ``reported``, the reported assignment, is compared with.
    Raises:
        StrategyError: The only library that is possible fails.
    """
    libraries = possible_libraries(problem)
    names = [name for library in libraries for name in variants(library)]
    is_reported = libraries != [JAVA]
    label = libraries[0] if len(libraries) == 1 and is_reported else None
    answers: dict[str, Assignment] = {}
    found: dict[str, Owners] = {}
    failures: list[StrategyError] = []
    for name in names:
        try:
            answers[name] = compute(as_library(problem, name))
        except StrategyError as error:
            failures.append(error)
            continue
        if reported is None:
            return LibraryChoice(assignment=answers[name], library=label)
        found[name] = owners(answers[name])
        if found[name] == reported:
            shown = label if name == names[0] and len(libraries) == 1 else name.removesuffix(LISTS_DIFFER)
            return LibraryChoice(assignment=answers[name], library=shown)
    if len(failures) == len(names) and failures[0].code != NOT_RECOMPUTABLE:
        raise failures[0]
    if reported is not None and is_reported and _is_stale(problem, list(found), compute, owners, reported):
        return LibraryChoice(assignment=answers[names[0]], library=label, incomparable=LEADER_METADATA_STALE)
    agree = len(libraries) == 1 or all(one == found.get(names[0]) for one in found.values())
    if agree and not failures and all(_is_exact(name, strategy, problem) for name in names):
        return LibraryChoice(assignment=answers[names[0]], library=label)
    reason = LIBRARY_NOT_RECOMPUTED if len(libraries) == 1 else LIBRARY_UNKNOWN
    return LibraryChoice(assignment={}, library=label, incomparable=reason)


def as_library(problem: Problem, name: str) -> Problem:
    """Return the problem as this library is asked it."""
    return msgspec.structs.replace(problem, settings={**problem.settings, "library": name})


def _is_exact(name: str, strategy: str, problem: Problem) -> bool:
    """Return whether what is computed here is certainly what the library assigns."""
    library = library_of(name)
    if strategy in (RANGE, ROUNDROBIN):
        return True
    if library.name == LIBRDKAFKA:
        return strategy == COOPERATIVE
    if library.name in (KAFKA_PYTHON, AIOKAFKA):
        # Of partitions that were claimed in two generations it takes any first, in the order of a set.
        return len({member.generation for member in problem.members if member.owned}) <= 1
    return library.has_constrained_path and (library.version is None or library.version >= _EXACT_STICKY_SINCE)


def _is_stale(
    problem: Problem,
    names: Sequence[str],
    compute: Callable[[Problem], Assignment],
    owners: Callable[[Assignment], Owners],
    reported: Owners,
) -> bool:
    """Return whether the reported assignment is what a leader computes that has no metadata of some topics.

    A consumer of kafka-python reports an empty first generation, and joins again as soon as it has metadata.
    """
    named = {queue[0] for queue in reported}
    known = {name: topic for name, topic in problem.topics.items() if name in named}
    if len(known) == len(problem.topics):
        return False
    smaller = msgspec.structs.replace(problem, topics=known)
    for name in names:
        try:
            if owners(compute(as_library(smaller, name))) == reported:
                return True
        except StrategyError:
            continue
    return False
