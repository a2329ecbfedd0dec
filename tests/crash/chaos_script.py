"""The script of a run of chaos, decided beforehand: the same seed and length give the same script."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_MOST_MEMBERS = 4
_BETWEEN_FAILURES_S = (1.5, 6.0)
_AWAY_S = (0.5, 9.0)
_BETWEEN_CHANGES_S = (3.0, 12.0)
_STARTS, _ENDS = "starts", ("is killed", "stops")


class Order(NamedTuple):
    """One order of the script.

    Attributes:
        at_s: Since the beginning; later where what it happens to is not done with the order before.
        target: A member, or something around them.
        what: `starts`, `is killed` (SIGKILL), `stops` (in order).
    """

    at_s: float
    target: str
    what: str


def script(seed: int, length_s: float, things: Sequence[str]) -> list[Order]:
    """Return the orders of a run: members come and go, and so do the things around them, which are all up in the end.

    Args:
        things: That are up at the beginning; each is away at times, several of them together at times.
    """
    chance = random.Random(f"{seed}:{length_s}:{','.join(things)}")
    return sorted([*_failures(chance, length_s, things), *_changes(chance, length_s)])


def _failures(chance: random.Random, length_s: float, things: Sequence[str]) -> Iterator[Order]:
    back_at = dict.fromkeys(things, 0.0)
    # Each order comes once, in random order, before any comes twice: a short run leaves none out.
    waiting = chance.sample(things, len(things))
    now = 0.0
    while (now := now + chance.uniform(*_BETWEEN_FAILURES_S)) < length_s:
        there = [thing for thing in waiting or things if back_at[thing] < now]
        if not there:
            continue
        thing = chance.choice(there)
        if thing in waiting:
            waiting.remove(thing)
        back_at[thing] = now + chance.uniform(*_AWAY_S)
        yield Order(now, thing, "is killed" if chance.random() < 0.7 else "stops")
        yield Order(back_at[thing], thing, _STARTS)


def _changes(chance: random.Random, length_s: float) -> Iterator[Order]:
    present = ["m1", "m2"]
    yield from (Order(0.0, member, _STARTS) for member in present)
    started, now = len(present), 0.0
    while (now := now + chance.uniform(*_BETWEEN_CHANGES_S)) < length_s:
        if len(present) == 1 or (len(present) < _MOST_MEMBERS and chance.random() < 0.5):
            started += 1
            present.append(f"m{started}")
            yield Order(now, present[-1], _STARTS)
        else:
            yield Order(now, present.pop(chance.randrange(len(present))), chance.choice(_ENDS))
