"""Shell: how far the running query has read a Kafka topic.

A batch's offsets are planned before it begins. Records written while it runs are read by a later batch, even after a
kill, because Spark repeats a batch with its offsets. So planned offsets count as read once the batch has begun.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress

import msgspec

from streaming.pipeline.query_log import BatchOffsets, read_planned, topic_offsets
from streaming.stores.places import Place


class QueryPosition:
    """The position in one topic, from the plan of the running batch and Spark's reports of finished batches."""

    def __init__(self, query: Place, topic: str) -> None:
        self._query = query
        self._topic = topic
        self._lock = threading.Lock()
        self._begun = self._checked = self._batch = -1
        self._offsets: dict[int, int] = {}

    def began(self, batch: int) -> None:
        """Record a batch that begins; its plan is read on demand."""
        self._begun = batch

    def ended(self, batch: int, end: object) -> None:
        """Record the end offsets of one source, as Spark reports them, even if nothing came."""
        # Spark reports offsets as the JSON of its own log.
        if isinstance(end, str):
            try:
                end = msgspec.json.decode(end)
            except msgspec.DecodeError:
                return
        if isinstance(end, dict):
            with self._lock:
                self._note(batch, topic_offsets(BatchOffsets(batch, [end]), self._topic))

    def offsets(self) -> Mapping[int, int]:
        """Return how far each partition was read: partition -> next offset."""
        with self._lock:
            begun = self._begun
            if begun not in (self._checked, self._batch):
                self._checked = begun
                # If the plan cannot be read now, the batch's end will show the position.
                with suppress(OSError, ValueError):
                    self._note(begun, topic_offsets(read_planned(self._query, begun), self._topic))
            return self._offsets

    def _note(self, batch: int, offsets: dict[int, int]) -> None:
        if batch >= self._batch and offsets:
            self._batch, self._offsets = batch, offsets
