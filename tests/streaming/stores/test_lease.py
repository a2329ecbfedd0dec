"""A lease: one holder, who renews it; named to others; taken over when it has expired."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
import pytest
from deltalake import DeltaTable

from streaming.setup.errors import SetupError
from streaming.stores.lease import Lease, LeaseLostError
from streaming.stores.store_path import StorePath

if TYPE_CHECKING:
    from tests.kit.hdfs import HdfsServer
    from tests.kit.s3 import S3Server

pytestmark = pytest.mark.broker

_HOLDER = """
import sys, time
from streaming.stores.lease import Lease
from streaming.stores.store_path import StorePath
Lease(StorePath(sys.argv[1]), problem="busy", remedy="wait").acquire()
print("held", flush=True)
time.sleep(600)
"""


class _Clock:
    """The parts of the module ``time`` that a lease uses; other threads keep the real ones."""

    def __init__(self) -> None:
        self.at = time.monotonic()
        self.sleep: Callable[[float], None] = time.sleep

    def monotonic(self) -> float:
        return self.at


@pytest.fixture(params=["s3", pytest.param("hdfs", marks=pytest.mark.slow)])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> StorePath:
    server: S3Server | HdfsServer = request.getfixturevalue(request.param)
    return StorePath(server.folder(monkeypatch)) / "lock"


@pytest.fixture
def lease(place: StorePath) -> Callable[..., Lease]:
    def made(length_s: float = 30.0, renew_s: float = 0.2) -> Lease:
        return Lease(place, problem="another job runs on it", remedy="stop it", length_s=length_s, renew_s=renew_s)

    return made


def test_a_second_one_is_refused_with_the_holder_and_its_age(lease: Callable[..., Lease]) -> None:
    first = lease()
    first.acquire()
    try:
        holder = rf"another job runs on it: process {os.getpid()} on {socket.gethostname()} has held it for \d+ s"
        with pytest.raises(SetupError, match=holder):
            lease().acquire()
        first.check()
    finally:
        first.release()
    next_one = lease()
    next_one.acquire()  # at once: it was released
    next_one.release()


def test_only_one_of_many_concurrent_processes_gets_the_lease(place: StorePath, lease: Callable[..., Lease]) -> None:
    got: list[Lease] = []
    refused: list[SetupError] = []
    at_once = threading.Barrier(6)

    def want() -> None:
        mine = lease()
        at_once.wait()
        try:
            mine.acquire()
        except SetupError as error:
            refused.append(error)
        else:
            got.append(mine)

    threads = [threading.Thread(target=want) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(got), len(refused)) == (1, 5)
    # A later one would hide the holder from processes that ask next.
    assert [commit["operation"] for commit in DeltaTable(str(place)).history()].count("CREATE TABLE") == 1
    got[0].release()


def test_one_that_slept_while_a_lease_was_renewed_does_not_take_it(
    lease: Callable[..., Lease], monkeypatch: pytest.MonkeyPatch
) -> None:
    holder, sleeper = lease(renew_s=600.0), lease()
    holder.acquire()
    clock = _Clock()

    def sleep(_seconds: float) -> None:
        """Sleep for longer than a lease lasts; it is renewed meanwhile."""
        assert holder._commit(msgspec.structs.replace(holder._me, renewed_ms=1))
        clock.at += 60

    clock.sleep = sleep
    monkeypatch.setattr("streaming.stores.lease.time", clock)
    with pytest.raises(SetupError, match="another job runs on it"):
        sleeper.acquire()
    holder.release()


def test_one_that_is_not_renewed_is_taken_over_and_its_holder_stops(lease: Callable[..., Lease]) -> None:
    first = lease(length_s=2.0, renew_s=600.0)  # its process seems frozen
    first.acquire()
    second = lease(length_s=2.0, renew_s=600.0)
    second.acquire()
    second._length_s = 6_000.0  # from here on, however slow the machine is
    with pytest.raises(LeaseLostError, match="is lost"):
        first.check()
    assert not first._commit(first._me)  # it comes too late
    second.check()
    first.release()
    second.check()
    second.release()


def test_a_holder_from_which_it_was_taken_finds_out_by_its_next_renewal(lease: Callable[..., Lease]) -> None:
    first = lease(length_s=600.0)
    first.acquire()
    thief = lease()
    thief._table = thief._open()
    while not thief._commit(thief._me):
        pass
    first._thread.join(60)
    with pytest.raises(LeaseLostError, match=r"taken by process \d+"):
        first.check()


def test_that_of_a_killed_process_of_this_machine_is_free_at_once(
    place: StorePath, lease: Callable[..., Lease]
) -> None:
    with subprocess.Popen([sys.executable, "-c", _HOLDER, str(place)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(SetupError, match=f"process {process.pid} on"):
            lease().acquire()
        process.kill()
    mine = lease(length_s=600.0)
    mine.acquire()
    mine.release()


def test_a_store_that_takes_no_renewal_ends_the_use_before_the_lease_does(
    lease: Callable[..., Lease], monkeypatch: pytest.MonkeyPatch
) -> None:
    held = lease(length_s=6_000.0, renew_s=6_000.0)
    held.acquire()
    held.check()
    clock = _Clock()
    monkeypatch.setattr("streaming.stores.lease.time", clock)
    clock.at = held._renewed + 4_000
    held.check()
    clock.at = held._renewed + 4_500
    with pytest.raises(LeaseLostError, match="did not take a renewal in time"):
        held.check()


def test_its_log_stays_short(place: StorePath, lease: Callable[..., Lease], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "streaming.stores.lease._PROPERTIES",
        {"delta.checkpointInterval": "20", "delta.logRetentionDuration": "interval 0 seconds"},
    )
    held = lease(renew_s=600.0)
    held.acquire()
    for number in range(50):
        assert held._commit(held._me.__class__(**{**_fields(held), "renewed_ms": number}))
    assert DeltaTable(str(place)).version() > 50
    assert len(list((place / "_delta_log").iterdir())) < 30
    held.release()


def _fields(lease: Lease) -> dict[str, object]:
    return {name: getattr(lease._me, name) for name in lease._me.__struct_fields__}
