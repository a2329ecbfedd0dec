"""Shell: a lease on a store, for what only one process may use at a time; its holder renews it.

A lease is a Delta table without rows. Its log is the only thing that delta-rs writes conditionally on every store:
version N+1 is put only if it does not exist (``If-None-Match`` on S3, Azure and GCS; a rename that replaces nothing on
HDFS). So if two processes have read version N, only one succeeds. A commit carries the holder, and a number that counts
up.

Clocks of two machines are never compared: a lease has expired when it has not changed for its length, by the clock of
the process that wants it. The holder stops using it earlier, in case the store is unavailable.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import uuid

import msgspec
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.schema import Schema

from streaming.machine.clock import now_ms
from streaming.machine.logs import logger
from streaming.machine.process import is_same_machine, process_identity
from streaming.setup.errors import SetupError
from streaming.stores.failure import one_line, store_error
from streaming.stores.store_path import StorePath

LENGTH_S = 30.0
_RENEW_S = 5.0
# After this share of the length without a renewal nothing is written any more. The rest is for writes in progress.
_SAFE_SHARE = 0.7
_PROBE_S = 0.5
_SCHEMA = '{"type":"struct","fields":[{"name":"none","type":"long","nullable":true,"metadata":{}}]}'
_NAME = "lease"
# Old commits are useless, so the log stays as short as delta-rs keeps it.
_PROPERTIES = {"delta.checkpointInterval": "100", "delta.logRetentionDuration": "interval 1 minutes"}
_log = logger("stores")


class LeaseLostError(OSError):
    """Another process has taken the lease, or it could not be renewed in time: nothing may be written any more."""


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """The process that holds a lease, according to its newest commit.

    Attributes:
        id: The id of this one use of the lease.
        host, pid: The process. process: Distinguishes it from a later process with the same number; empty if unknown.
        since_ms: When it was taken. renewed_ms: When this was written; both by the holder's clock.
        is_released: Whether it is free.
    """

    id: str
    host: str
    pid: int
    process: str
    since_ms: int
    renewed_ms: int
    is_released: bool = False


class Lease:
    """A lease, held from ``acquire`` to ``release``.

    Args:
        place: The lease's place: a folder of its own.
        problem: The meaning of another holder, for errors. remedy: What users may do then.
        length_s: How long it lasts without a renewal.
    """

    def __init__(
        self, place: StorePath, *, problem: str, remedy: str, length_s: float = LENGTH_S, renew_s: float = _RENEW_S
    ) -> None:
        self._place = place
        self._problem, self._remedy = problem, remedy
        self._length_s, self._renew_s = length_s, renew_s
        self._me = _this_process()
        self._renewed = 0.0
        self._lost: str | None = None
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="lease", daemon=True)

    def acquire(self) -> None:
        """Take the lease, after waiting to see whether a holder that may have died renews it.

        Raises:
            SetupError: Another process holds it.
            OSError: The store cannot be used.
        """
        with store_error(str(self._place)):
            self._table = self._open()
            first, began = self._table.version(), time.monotonic()
            while True:
                holder = _holder(self._table)
                is_renewed = self._table.version() != first
                is_expired = not is_renewed and time.monotonic() - began > self._length_s
                if holder is None or holder.is_released or is_expired or _has_ended(holder):
                    if self._commit(self._me):
                        break
                elif is_renewed:
                    raise SetupError(f"{self._problem}: {_described(holder)}", self._remedy)
                else:
                    time.sleep(_PROBE_S)
                    self._table.update_incremental()
            if holder is not None and not holder.is_released:
                _log.warning("a lease was taken over", lease=str(self._place), holder=_described(holder))
        self._thread.start()

    def check(self) -> None:
        """Raise an error if nothing may be written any more.

        Raises:
            LeaseLostError: Another process has taken the lease, or soon may.
        """
        if self._lost is None and time.monotonic() - self._renewed > self._length_s * _SAFE_SHARE:
            self._lost = "the store did not take a renewal in time"
        if self._lost is not None:
            raise LeaseLostError(f"the lease on {self._place.parent} is lost: {self._lost}")

    def release(self) -> None:
        """Free the lease at once."""
        self._ending.set()
        self._thread.join(self._length_s)
        if self._lost is None and not self._thread.is_alive():
            with contextlib.suppress(OSError, DeltaError):
                self._commit(msgspec.structs.replace(self._me, is_released=True))

    def _keep(self) -> None:
        while not self._ending.wait(self._renew_s) and self._lost is None:
            try:
                if not self._commit(msgspec.structs.replace(self._me, renewed_ms=now_ms())):
                    holder = _holder(self._table)
                    self._lost = "another job has taken it" if holder is None else f"taken by {_described(holder)}"
                    _log.error("the lease is lost", lease=str(self._place), reason=self._lost)
            except (OSError, DeltaError) as error:
                _log.warning("the lease could not be renewed", lease=str(self._place), reason=one_line(error))

    def _commit(self, holder: Holder) -> bool:
        """Write a holder after the version that this process read last; return whether it is now the newest."""
        began = time.monotonic()
        number = (self._table.transaction_version(_NAME) or 0) + 1
        properties = CommitProperties(
            custom_metadata={_NAME: msgspec.json.encode(holder).decode()},
            max_commit_retries=0,
            app_transactions=[Transaction(_NAME, number)],
        )
        with contextlib.suppress(CommitFailedError):  # it was refused; or it was written, and the answer was lost
            self._table.create_write_transaction([], "append", self._table.schema(), commit_properties=properties)
        self._table.update_incremental()
        newest = _holder(self._table)
        if newest == holder:
            self._renewed = began
        return newest is not None and newest.id == self._me.id

    def _open(self) -> DeltaTable:
        try:
            return DeltaTable(str(self._place))
        except TableNotFoundError:
            try:
                # Retried, a concurrent creation would commit behind the first holder's commit, and hide the holder.
                once = CommitProperties(max_commit_retries=0)
                return DeltaTable.create(
                    str(self._place), Schema.from_json(_SCHEMA), configuration=_PROPERTIES, commit_properties=once
                )
            except DeltaError:
                return DeltaTable(str(self._place))  # another process has just created it


def _this_process() -> Holder:
    now = now_ms()
    pid = os.getpid()
    return Holder(
        id=uuid.uuid4().hex,
        host=socket.gethostname(),
        pid=pid,
        process=process_identity(pid),
        since_ms=now,
        renewed_ms=now,
    )


def _holder(table: DeltaTable) -> Holder | None:
    """Return the writer of the newest commit; None if there is none."""
    found = table.history(1)[0].get(_NAME)
    return None if found is None else msgspec.json.decode(found, type=Holder)


def _described(holder: Holder) -> str:
    now = now_ms()
    since, renewed = (max(0, now - time_ms) // 1000 for time_ms in (holder.since_ms, holder.renewed_ms))
    return f"process {holder.pid} on {holder.host} has held it for {since} s and renewed it {renewed} s ago"


def _has_ended(holder: Holder) -> bool:
    """Return whether the holder was a process of this machine, and has ended."""
    return is_same_machine(holder.process) and process_identity(holder.pid) != holder.process
