"""Liveness beside tables that no job has written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec

from streaming.machine.clock import now_ms
from streaming.machine.process import process_identity, since_boot_ms
from streaming.settings.locations import Location
from streaming.tables.liveness import ClusterLiveness, JobLiveness, liveness_place, read_liveness, write_liveness
from tests.streaming.tables.journals import T0

APP = "app"


def sign(*clusters: ClusterLiveness, **fields: object) -> JobLiveness:
    """Return the sign of a job that has read a recording once, unless fields say otherwise."""
    job = JobLiveness(
        app_id=APP,
        host="host-1",
        pid=1,
        process="other-boot pid:[1] 7",
        written_at=T0,
        written_boot_ms=0,
        every_ms=5_000,
        unknown_after_ms=30_000,
        state="finished",
        state_since=T0,
        started_at=T0,
        clusters=list(clusters),
    )
    return msgspec.structs.replace(job, **fields)


def known(name: str, *, known_until: int = T0, age_ms: int = 0, **fields: object) -> ClusterLiveness:
    """Return one cluster's part of a sign."""
    found = ClusterLiveness(cluster=name, known_until=known_until, newest=known_until, age_ms=age_ms)
    return msgspec.structs.replace(found, **fields)


def leave_sign(root: Location, job: JobLiveness) -> None:
    """Leave the liveness of a job beside tables."""
    place = liveness_place(root, job.app_id)
    place.parent.mkdir(parents=True, exist_ok=True)
    write_liveness(place, job)


def living(*clusters: ClusterLiveness, **fields: object) -> JobLiveness:
    """Return the sign of a live job, which is this process; it holds for an hour of a test."""
    here = {"app_id": "living", "state": "running", "pid": os.getpid(), "process": process_identity(os.getpid())}
    times = {"written_at": now_ms(), "written_boot_ms": since_boot_ms(), "unknown_after_ms": 3_600_000}
    return sign(*clusters, **(here | times | fields))


def leave_living_sign(root: Location, *names: str) -> None:
    """Leave the sign of a job that lives, and knows these clusters."""
    leave_sign(root, living(*(known(name, known_until=now_ms(), is_live=True) for name in names)))


def leave_silent_sign(root: Location, *names: str, known_until: int) -> None:
    """Leave the sign of a job that lives, and has learned nothing of these clusters for more than an hour."""
    lost = [
        known(name, known_until=known_until, age_ms=4_000_000, is_live=True, is_followed=True, problem="it is silent")
        for name in names
    ]
    leave_sign(root, living(*lost, app_id="silent"))


def leave_recording_sign(
    root: Location, names: Iterable[str], newest: Mapping[str, int] = MappingProxyType({})
) -> None:
    """Leave the sign of a job that has read recordings of these clusters once, and of those that are there already.

    Args:
        newest: The time of the newest event of clusters, epoch ms, where it is later than ``T0``.
    """
    jobs, _ = read_liveness(root)
    ends = {cluster.cluster: cluster.known_until for job in jobs for cluster in job.clusters}
    for name in names:
        ends[name] = max(ends.get(name, T0), newest.get(name, T0))
    leave_sign(root, sign(*(known(name, known_until=ends[name]) for name in sorted(ends))))
