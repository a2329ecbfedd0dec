"""Core: the order of Kafka's ``TimelineHashMap``, in which a group coordinator holds members. No I/O.

Source: kafka-server-common 4.1.1 ``org.apache.kafka.timeline.TimelineHashMap``, as observed: a slot is the upper bits
of the hash code times 2^64 over the golden ratio; within a slot the newest comes first; a table holds up to four thirds
as many keys as it has slots, then it doubles, and it never shrinks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from udfs.jvm.collections import string_hashes

_GOLDEN: Final = 0x9E3779B97F4A7C15
_BITS: Final = 64
_FIRST_SLOTS: Final = 2


def timeline_map_order(texts: Sequence[str], most: int | None = None) -> list[str]:
    """Return the keys in the order in which a ``TimelineHashMap<String, ?>`` iterates over them.

    Args:
        texts: Distinct, in the order in which they were put; a text put again stays where it is.
        most: The most keys since the map was created; None if there were never more than now.
    """
    slots = _FIRST_SLOTS
    while 3 * max(len(texts), most or 0) > 4 * slots:
        slots *= 2
    shift = _BITS - slots.bit_length() + 1
    places = [(code * _GOLDEN % (1 << _BITS)) >> shift for code in string_hashes(texts)]
    order = sorted(range(len(texts)), key=lambda index: (places[index], -index))
    return [texts[index] for index in order]
