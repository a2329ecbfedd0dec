"""Dashboard: results for the tables' current versions, bounded by bytes, each computed by only one thread at a time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import pyarrow as pa
import pyarrow.ipc

Kept = TypeVar("Kept", pa.Table, bytes)
# Measured overhead of a small result in addition to its own bytes: an entry, and each column with its buffers.
_ENTRY_BYTES, _COLUMN_BYTES = 512, 2_048


@dataclass
class _Entry:
    versions: tuple[int, ...] | Mapping[str, int]
    value: pa.Table | bytes | None = None
    size: int = 0
    computing: threading.Lock = field(default_factory=threading.Lock)


class ResultCache:
    """Keeps results until a table behind them changes; the least recently used are evicted first.

    Args:
        limit_bytes: The total size of the results; a larger result is not kept.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._held = 0
        self._lock = threading.Lock()

    @property
    def held_bytes(self) -> int:
        """Return the number of bytes kept now."""
        return self._held

    def get(self, key: Hashable, versions: Sequence[int], compute: Callable[[], Kept]) -> Kept:
        """Return the result of a key at these versions; callers that come while it is computed wait for it."""
        wanted = tuple(versions)

        def compute_it(_: _Entry) -> Kept:
            return compute()

        return self._get(key, _Entry(wanted), lambda entry: entry.versions == wanted, compute_it)

    def get_as_read(
        self, key: Hashable, versions: Mapping[str, int], compute: Callable[[], tuple[Kept, Collection[str]]]
    ) -> Kept:
        """Return the result of a key; it stays until one of the tables changes that it was computed from.

        Args:
            versions: Versions of all tables. While a result is computed, it may depend on each of them.
        """
        now = dict(versions)

        def fits(entry: _Entry) -> bool:
            read = entry.versions
            return isinstance(read, Mapping) and all(now[name] == version for name, version in read.items())

        def compute_it(entry: _Entry) -> Kept:
            value, names = compute()
            entry.versions = {name: now[name] for name in names}
            return value

        return self._get(key, _Entry(now), fits, compute_it)

    def _get(
        self, key: Hashable, fresh: _Entry, fits: Callable[[_Entry], bool], compute: Callable[[_Entry], Kept]
    ) -> Kept:
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or not fits(entry):
                self._drop(key)
                entry = self._entries[key] = fresh
            self._entries.move_to_end(key)
        with entry.computing:
            if entry.value is None:
                try:
                    entry.value = _compact(compute(entry))
                except BaseException:
                    with self._lock:
                        if self._entries.get(key) is entry:
                            del self._entries[key]
                    raise
                self._hold(key, entry)
            value: Kept = entry.value
            return value

    def _hold(self, key: Hashable, entry: _Entry) -> None:
        with self._lock:
            if self._entries.get(key) is not entry or entry.value is None:
                return
            entry.size = _ENTRY_BYTES + len(repr(key)) + _size(entry.value)
            self._held += entry.size
            if entry.size > self._limit:
                self._drop(key)
            for oldest in list(self._entries):
                if self._held <= self._limit:
                    break
                self._drop(oldest)

    def _drop(self, key: Hashable) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._held -= entry.size


def _compact(value: Kept) -> Kept:
    """Return a result in memory of its own: rows filtered by delta-rs keep the large buffers that they were part of.

    As a side effect a table becomes one piece.
    """
    if isinstance(value, bytes):
        return value
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, value.schema) as writer:
        writer.write_table(value.combine_chunks())
    # The bytes are copied: the sink's buffer may be twice as large as its content.
    return pa.ipc.open_stream(pa.py_buffer(sink.getvalue().to_pybytes())).read_all()


def _size(value: pa.Table | bytes) -> int:
    """Return the bytes of a compact result."""
    return len(value) if isinstance(value, bytes) else int(value.nbytes) + _COLUMN_BYTES * value.num_columns
