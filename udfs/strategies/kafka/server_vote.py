"""Core: the assignor that a Kafka group of the new protocol uses: that of most members, or one of several. No I/O.

Source: kafka-group-coordinator 4.1 ``ConsumerGroup#computePreferredServerAssignor``: a ``HashMap`` copied from the
coordinator's own map of votes, in which the vote of the requesting member is replaced by its new one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, permutations
from typing import Final

from udfs.jvm.collections import INITIAL_CAPACITY, LOAD_DENOMINATOR, LOAD_NUMERATOR, string_hashes, table_size_for
from udfs.jvm.timeline_map import timeline_map_order

# At most this many orders of names are tried, which are all orders of four names.
_MAX_ORDERS: Final = 24


def preferred_assignors(votes: Mapping[str, int], requesting: str | None = None) -> list[str]:
    """Return the assignors that a group may use, likeliest first: one, unless several have the most votes.

    In that case it depends on which member's request made the target: a name that was not in the map comes first in its
    slot, and so does a name whose only voter made the request.

    Args:
        votes: The number of votes for each name, at least one; in the order in which the coordinator first had the
            names.
        requesting: The vote of the member that joined last, which most likely requested the target.

    Example:
        >>> preferred_assignors({"uniform": 1, "range": 1}, "range"), preferred_assignors({"uniform": 2, "range": 1})
        (['range', 'uniform'], ['uniform'])
    """
    if not votes:
        return []
    most = max(votes.values())
    tied = [name for name in votes if votes[name] == most]
    if len(tied) == 1:
        return tied
    orders = _orders(list(votes), votes, requesting)
    return list(dict.fromkeys(next(name for name in order if votes[name] == most) for order in orders))


def _orders(names: Sequence[str], votes: Mapping[str, int], requesting: str | None) -> Iterator[list[str]]:
    """Return the orders in which the map of votes may iterate."""
    requesters = dict.fromkeys([*([] if requesting is None else [requesting]), *names])
    for put in islice(permutations(names), _MAX_ORDERS):
        for is_copied_larger in (True, False):
            for requester in requesters:
                if votes[requester] == 1:
                    others = [name for name in put if name != requester]
                    yield _order(others, is_copied_larger, added=requester)
                    yield _order(put, is_copied_larger, added=requester)
                else:
                    yield _order(put, is_copied_larger)


def _order(counted: Sequence[str], is_copied_larger: bool, added: str | None = None) -> list[str]:
    """Return the order of a copy of the coordinator's map of votes.

    Args:
        counted: The names in that map. is_copied_larger: Whether the copy has the slots that Java made before 19.
            added: A name that ``compute`` puts into the copy, after it was removed if it was there.
    """
    slots = _copied_slots(len(counted), is_copied_larger)
    copied = [name for name in timeline_map_order(counted) if name != added]
    # A name that ``compute`` adds comes first in its slot, without a larger table.
    listed = copied if added is None else [added, *copied]
    hashes = [code & 0xFFFFFFFF for code in string_hashes(listed)]
    places = [(code ^ code >> 16) & (slots - 1) for code in hashes]
    return [listed[index] for index in sorted(range(len(listed)), key=places.__getitem__)]


def _copied_slots(count: int, is_larger: bool) -> int:
    """Return the slots of ``new HashMap<>(map)``, Java 19's or the larger number before it."""
    if count == 0:
        return INITIAL_CAPACITY
    whole = count * LOAD_DENOMINATOR // LOAD_NUMERATOR + 1
    return table_size_for(whole if is_larger else -(-count * LOAD_DENOMINATOR // LOAD_NUMERATOR))
