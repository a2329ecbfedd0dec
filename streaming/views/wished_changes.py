"""Shell: a change as people name it, by members, hosts, racks and topics, as the change of a known group."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from streaming.settings.suggestions import did_you_mean
from streaming.tables.errors import AmbiguousError, NotFoundError
from streaming.terminal.format import count
from streaming.views.known_groups import FoundGroup, UnknowableError
from udfs.group.state.group import Member
from udfs.group.what_if.known_group import KnownGroup
from udfs.group.what_if.planned_change import PlannedChange
from udfs.model.clients import client_of, host_of
from udfs.model.errors import StrategyError
from udfs.model.first_few import first_few
from udfs.model.systems import SYSTEMS
from udfs.strategies.registry import names, qualified_name, registered

_FEW: Final = 5
# In place of a strategy: each of the system's, to compare them.
EVERY: Final = "all"
# These decide by settings that no table has: lists of queues, rooms, machines.
NEEDS_SETTINGS: Final = frozenset(
    {"rocketmq.CONFIG", "rocketmq.MACHINE_ROOM", "rocketmq.MACHINE_ROOM_NEARBY", "rocketmq.PINNED"}
)

_QUEUES: Final = re.compile(r"(.+)=([0-9]{1,7})")


class Wish(NamedTuple):
    """A change as it was asked for.

    Attributes:
        remove: Members, or how many. hosts, racks: Those that are lost. queues: The new number by topic.
        strategy: Any name of it; None to keep it. like: The member that new ones subscribe like.
        at_once: How many members a rolling restart restarts at a time; 0 for no restart.
    """

    add: int = 0
    like: str | None = None
    remove: Sequence[str] = ()
    hosts: Sequence[str] = ()
    racks: Sequence[str] = ()
    queues: Mapping[str, int] = {}
    strategy: str | None = None
    at_once: int = 0
    is_static: bool = False


def strategies_of(system: str) -> list[str]:
    """Return the strategies of a system that need no settings, without the system's name."""
    of_system = [name for name in names() if name.startswith(f"{system}.") and name not in NEEDS_SETTINGS]
    return [name.partition(".")[2] for name in of_system]


def queues_of(texts: Iterable[str]) -> dict[str, int]:
    """Return new numbers of queues by topic, each as people write it.

    Raises:
        NotFoundError: A text is not of this form.
    """
    found: dict[str, int] = {}
    for text in texts:
        parts = _QUEUES.fullmatch(text)
        if parts is None:
            raise NotFoundError(f"--queues is TOPIC=N, e.g. orders=24, not {text[:50]!r}")
        found[parts[1]] = int(parts[2])
    return found


def mistakes_of(wish: Wish, *, is_compared: bool, at_a_time: int) -> list[str]:
    """Return why a wish makes no sense, by the options of `what-if`.

    Args:
        is_compared: It is compared under every strategy. at_a_time: How many members restart at a time, if any do.
    """
    mistakes: list[str] = []
    nothing = wish._replace(like=None, is_static=False) == Wish()
    if nothing and not is_compared:
        mistakes.append("nothing is to change; --help lists what can")
    if not wish.at_once and (wish.is_static or at_a_time != 1):
        mistakes.append("--static and --at-a-time: only with --rolling-restart")
    if wish.like is not None and not wish.add:
        mistakes.append("--like: only with --add")
    return mistakes


def change_of(found: FoundGroup, wish: Wish) -> PlannedChange:
    """Return the change of a group that a wish means.

    Raises:
        NotFoundError, AmbiguousError: It names something that the group does not have, or several.
        UnknowableError: The tables cannot tell what it means.
    """
    known = found.known
    lost = [*_on_hosts(known, wish.hosts), *_in_racks(known, wish.racks)]
    leaving = [member_id for member_id in _removed(known, wish.remove) if member_id not in lost]
    strategy = None if wish.strategy is None else strategy_named(known.system, wish.strategy)
    assigning = strategy or found.strategy
    if wish.add and assigning in NEEDS_SETTINGS:
        raise UnknowableError(f"where new members would be is not known, by which {assigning} assigns")
    if wish.is_static and not SYSTEMS[known.system].has_static_members:
        raise UnknowableError(f"{SYSTEMS[known.system].title} has no static members")
    return PlannedChange(
        strategy=strategy,
        add=wish.add,
        like=None if wish.like is None else _named(known, wish.like).member_id,
        leaving=tuple(dict.fromkeys(leaving)),
        lost=tuple(dict.fromkeys(lost)),
        queues=_checked_queues(known, wish.queues),
        at_once=wish.at_once,
        is_static=wish.is_static,
    )


def strategy_named(system: str, name: str) -> str:
    """Return the qualified name of a strategy of a system.

    Raises:
        NotFoundError: There is none. UnknowableError: It needs settings that no table has.
    """
    strategy = qualified_name(name, system)
    of_system = [each for each in names() if each.startswith(f"{system}.")]
    try:
        registered(strategy, system)
    except StrategyError:
        strategy = ""
    if not strategy.startswith(f"{system}."):
        meant = did_you_mean(name, of_system) or f"; there are {', '.join(of_system)}"
        raise NotFoundError(f"{SYSTEMS[system].title} has no strategy {name}{meant}")
    if strategy in NEEDS_SETTINGS:
        raise UnknowableError(f"{strategy} needs settings, which no table has; `allocate` takes them")
    return strategy


def _removed(known: KnownGroup, wished: Sequence[str]) -> list[str]:
    found: list[str] = []
    for text in wished:
        if text.isdecimal() and text not in known.member_ids:
            staying = [member_id for member_id in known.member_ids if member_id not in found]
            if int(text) > len(staying):
                raise NotFoundError(f"group {known.group_id} has only {count(len(staying), 'member')} to remove")
            # Deployments are scaled down from the newest member on.
            found += reversed(staying[len(staying) - int(text) :])
        else:
            found.append(_named(known, text).member_id)
    return found


def _named(known: KnownGroup, text: str) -> Member:
    """Return the member of an id, instance id, client or client id, or of the beginning of an id."""
    by_id = [member for member in known.members if member.member_id == text]
    by_client = [member for member in known.members if text in _names(member)]
    by_begin = [member for member in known.members if member.member_id.startswith(text)]
    fitting = by_id or by_client or (by_begin if text else [])
    if not fitting:
        there = sorted({name for member in known.members for name in (member.member_id, *_names(member))})
        raise NotFoundError(f"group {known.group_id} has no member {text}{did_you_mean(text, there)}")
    if len(fitting) > 1:
        ids = [member.member_id for member in fitting]
        raise AmbiguousError(f"{len(fitting)} members are named {text}: {first_few(ids, _FEW)}")
    return fitting[0]


def _names(member: Member) -> list[str]:
    client = client_of(member.instance_id, member.client_id, member.host)
    return [name for name in (member.instance_id, member.client_id, client) if name]


def _on_hosts(known: KnownGroup, hosts: Sequence[str]) -> list[str]:
    found: list[str] = []
    for host in hosts:
        there = [member.member_id for member in known.members if host in (member.host, host_of(member.host))]
        if not there:
            others = sorted({address for member in known.members if (address := host_of(member.host))})
            listed = f"; they are on {first_few(others, _FEW)}" if others else "; their hosts are not known"
            raise NotFoundError(f"no member of {known.group_id} is on {host}{did_you_mean(host, others) or listed}")
        found += there
    return found


def _in_racks(known: KnownGroup, racks: Sequence[str]) -> list[str]:
    found: list[str] = []
    for rack in racks:
        there = [member.member_id for member in known.members if member.rack == rack]
        others = sorted({member.rack for member in known.members if member.rack})
        if not others:
            raise UnknowableError(
                f"the racks of the members of {known.group_id} are not known: no source reported them"
            )
        if not there:
            raise NotFoundError(
                f"no member of {known.group_id} is in rack {rack}; they are in {first_few(others, _FEW)}"
            )
        found += there
    return found


def _checked_queues(known: KnownGroup, queues: Mapping[str, int]) -> Mapping[str, int]:
    for topic, number in queues.items():
        if topic not in known.topics:
            meant = did_you_mean(topic, list(known.topics)) or f"; it has {first_few(sorted(known.topics), _FEW)}"
            raise NotFoundError(f"group {known.group_id} has no topic {topic} with known queues{meant}")
        there = len(known.topics[topic])
        if not SYSTEMS[known.system].counts_queues_per_broker and number < there:
            raise NotFoundError(f"topic {topic} has {there} queues: partitions cannot be taken away")
    return queues
