"""Shell: fired watches whose nodes have not been read yet."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Final

from kazoo.protocol.states import EventType, KazooState, WatchedEvent

from streaming.collectors.metaq.znodes import Paths, concern_of
from streaming.machine.clock import now_ms

# A consumer takes its partitions one by one, milliseconds apart, so they are read together. Times stay exact, because
# each owner's node has its own. Joins and departures are read at once, before others change the same nodes.
OWNERS_WAIT_MS: Final = 50


@dataclass
class FiredWatches:
    """Nodes to read, each with the time of its first notification (epoch ms of this machine).

    Attributes:
        everything: The connection is new, or was lost and is back: no watch is set.
        described: Groups in which some member's node was written again.
    """

    everything: bool = False
    lists: int | None = None
    topics: dict[str, int] = field(default_factory=dict)
    groups: dict[str, int] = field(default_factory=dict)
    described: set[str] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.everything or self.lists or self.topics or self.groups)


class WatchQueue:
    """Collects fired watches from the client's threads; one thread can wait for them."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._changed = threading.Condition()
        self._fired = FiredWatches()
        self._owners: dict[str, int] = {}  # groups in which only owners of partitions changed
        self._state = KazooState.LOST
        self._woken = False

    @property
    def state(self) -> KazooState:
        """Return whether the client is connected."""
        return self._state

    def see_state(self, state: KazooState) -> None:
        """Record a change of the connection."""
        with self._changed:
            self._state = state
            if state == KazooState.CONNECTED:
                self._fired = FiredWatches(everything=True)
                self._owners.clear()
            self._changed.notify_all()

    def see_event(self, event: WatchedEvent) -> None:
        """Record that a watch fired."""
        if event.type == EventType.NONE:
            return  # these are events of the connection, which ``see_state`` handles
        concern = concern_of(self._paths, event.path)
        if concern is None:
            return
        now = now_ms()
        with self._changed:
            if concern.kind in ("groups", "topics"):
                self._fired.lists = self._fired.lists or now
            elif concern.kind == "group":
                self._fired.groups.setdefault(concern.name, now)
                if event.type == EventType.CHANGED:
                    self._fired.described.add(concern.name)
            elif concern.kind == "owners":
                self._owners.setdefault(concern.name, now)
            else:
                self._fired.topics.setdefault(concern.name, now)
            self._changed.notify_all()

    def drain(self) -> FiredWatches:
        """Return the nodes to read now, and start a new list."""
        with self._changed:
            fired, self._fired = self._fired, FiredWatches()
            now = now_ms()
            for name, since in list(self._owners.items()):
                if name in fired.groups or now - since >= OWNERS_WAIT_MS:
                    del self._owners[name]
                    fired.groups[name] = min(since, fired.groups.get(name, since))
            return fired

    def give_back(self, fired: FiredWatches) -> None:
        """Keep nodes that could not be read or reported for the next time."""
        with self._changed:
            newer = self._fired
            self._fired = FiredWatches(
                everything=fired.everything or newer.everything,
                lists=fired.lists or newer.lists,
                topics={**newer.topics, **fired.topics},
                groups={**newer.groups, **fired.groups},
                described=fired.described | newer.described,
            )

    def wake(self) -> None:
        """End the waiting."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def wait(self, timeout_s: float) -> None:
        """Return when there is something to do, or after the timeout."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while not self._is_ready():
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    break
                self._changed.wait(min(left_s, OWNERS_WAIT_MS / 1_000) if self._owners else left_s)
            self._woken = False

    def _is_ready(self) -> bool:
        waited = any(now_ms() - since >= OWNERS_WAIT_MS for since in self._owners.values())
        return self._woken or (self._state == KazooState.CONNECTED and (waited or bool(self._fired)))
