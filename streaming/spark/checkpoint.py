"""Shell: the monitor's part of a checkpoint folder: its identity, its control folder, collected events.

```
<checkpoint>/identity.json   app id, shards, sources: fixed for the life of the checkpoint
<checkpoint>/query/          Spark's checkpoint
<checkpoint>/control/        marks that the driver writes and the query reads: flush, ticks, losses
<checkpoint>/collected/      events of collectors that run beside the job
<checkpoint>/losses.json     up to where the job has answered for input that was deleted before it was read
<checkpoint>/lock            held by the job that runs on it; on a store the folder of a lease
<checkpoint>/spark.log       Spark's log since the last start; not on a store
```
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
import uuid
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from streaming.settings.locations import Location
from streaming.stores.locks import Guard, exclusive_use
from streaming.stores.places import Place, place_of, write_whole

IDENTITY_VERSION = 1


class CheckpointError(Exception):
    """A checkpoint that cannot be used as requested; the message has the remedy."""


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Properties that never change while a checkpoint lives.

    Attributes:
        app_id: Marks the commits of this checkpoint in the tables' logs.
        sources: The query's sources, in order, e.g. ``events:/var/events``.
    """

    version: int
    app_id: str
    shards: int
    shuffle_partitions: int
    sources: list[str]


class Checkpoint:
    """One checkpoint folder.

    Args:
        location: The folder, or its URI; created if missing.
    """

    def __init__(self, location: Location) -> None:
        root = place_of(location)
        self.root = root
        self.query = root / "query"
        self.control = root / "control"
        self.collected = root / "collected"
        self._identity_file = root / "identity.json"

    def log_file(self, name: str) -> Path:
        """Return the file for the JVM's output: next to a checkpoint on a disk, else in the temporary folder.

        Raises:
            CheckpointError: The folder of this user's logs was created by another user.
        """
        if isinstance(self.root, Path):
            return self.root / name
        own = Path(tempfile.gettempdir()) / f"rebalance-monitor-logs-{os.getuid()}"
        own.mkdir(mode=0o700, exist_ok=True)
        if own.is_symlink() or own.stat().st_uid != os.geteuid():
            raise CheckpointError(f"{own} belongs to another user. Name another folder for temporary files in TMPDIR.")
        return own / re.sub(r"[^A-Za-z0-9.-]+", "-", str(self.root))[-80:] / name

    def read(self) -> Identity | None:
        """Return the identity of this checkpoint; None if it is new.

        Raises:
            CheckpointError: It has another format or is damaged.
        """
        try:
            content = self._identity_file.read_bytes()
        except FileNotFoundError:
            if (self.query / "offsets").exists():
                raise CheckpointError(
                    f"{self.root} holds a query but no identity.json: it was not made by the monitor, or is incomplete."
                    " Choose another folder with --checkpoint."
                ) from None
            return None
        try:
            identity = msgspec.json.decode(content, type=Identity)
        except msgspec.DecodeError as error:
            raise CheckpointError(
                f"{self._identity_file} cannot be read: {error}. Choose another --checkpoint."
            ) from error
        if identity.version > IDENTITY_VERSION:
            raise CheckpointError(
                f"{self.root} was written by a newer version of the monitor (identity {identity.version},"
                f" this one reads {IDENTITY_VERSION}). Run that version, or choose another --checkpoint."
            )
        return identity

    def open(self, *, shards: int, shuffle_partitions: int, sources: Iterable[str]) -> Identity:
        """Create the checkpoint, or check that it was created for the same sources and shards.

        Raises:
            CheckpointError: It was created for other sources or another number of shards, or cannot be written.
        """
        wanted = Identity(
            version=IDENTITY_VERSION,
            app_id=uuid.uuid4().hex,
            shards=shards,
            shuffle_partitions=shuffle_partitions,
            sources=list(sources),
        )
        found = self.read()
        if found is None:
            try:
                for folder in (self.control, self.collected):
                    folder.mkdir(parents=True, exist_ok=True)
                write_whole(self._identity_file, msgspec.json.format(msgspec.json.encode(wanted)))
            except OSError as error:
                reason = error.strerror or error
                raise CheckpointError(
                    f"{self.root} cannot be written: {reason}. Choose another folder with --checkpoint."
                ) from error
            return wanted
        if found.sources != wanted.sources:
            raise CheckpointError(
                f"{self.root} was made for the sources {', '.join(found.sources)}, not {', '.join(wanted.sources)}."
                " The sources of a checkpoint are fixed: start with the same ones, or choose another --checkpoint"
                " (`state export` transfers the groups)."
            )
        if found.shards != shards:
            raise CheckpointError(
                f"{self.root} has {found.shards} shards, not {shards}. Start with --shards {found.shards}, or export"
                " its state with `state export` and start a new checkpoint from it."
            )
        return found

    def exclusive_lock(self) -> AbstractContextManager[Guard]:
        """Lock the checkpoint while inside; it must have been opened. The yielded guard raises if the lock is lost."""
        return exclusive_use(
            self.root / "lock",
            problem=f"another job runs on {self.root}",
            remedy="stop that one first, or choose another --checkpoint",
        )


class ControlFolder:
    """Marks for the query: one small file each, named so that they are read in the order in which they were made.

    The query deletes what it has read, so names count nanoseconds, and none occurs twice.
    """

    def __init__(self, folder: Place) -> None:
        self._folder = folder
        self._last = max((int(file.name.split("-")[0]) for file in folder.glob("*-*.json")), default=0)

    def mark(self, kind: str, clusters: Mapping[str, Mapping[str, object]]) -> None:
        """Write one mark for each of the clusters, e.g. ``mark("flush", {"c1": {}})``."""
        marks = ({"control": kind, "cluster": cluster, **more} for cluster, more in sorted(clusters.items()))
        self._last = max(self._last + 1, time.time_ns())
        text = "".join(f"{json.dumps(mark)}\n" for mark in marks)
        write_whole(self._folder / f"{self._last:020d}-{kind}.json", text.encode())
