"""Shell: a job's liveness file next to its tables: that it is alive, and how far it knows each cluster.

`<tables>/_liveness/<app id>.json` is one small file for each checkpoint, replaced every few seconds. It is not a Delta
table: a commit every few seconds would cost a job whose tables Spark writes a tenth of a core, and any job hundreds of
files an hour. DuckDB reads it with ``read_json``. Lasting facts, such as an outage from start to end, are rows of
``findings``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from streaming.settings.locations import Location
from streaming.stores.places import Place, place_of, write_whole
from streaming.stores.store_path import PATIENCE, StorePath

VERSION = 1
FOLDER = "_liveness"
# The file is below a folder of events, whose readers ignore names that begin like this.
COLLECTORS = "_collectors"
# Beyond this many clusters, those with the oldest events are left out.
MAX_CLUSTERS = 10_000
LONGEST_REASON = 300

JobState: TypeAlias = Literal[
    "starting", "running", "catching_up", "reconnecting", "stopping", "stopped", "finished", "failed"
]
# A job in one of these states has ended in order.
ENDED: frozenset[JobState] = frozenset(("stopped", "finished", "failed"))


class SourceStatus(NamedTuple):
    """Why a cluster, or a part of it, is not known, as its collector reports it; empty texts if all of it answers.

    ``is_own``: whether the collector is the job's own; otherwise it runs standalone, and writes into the folder that
    the job reads.
    """

    cluster: str
    problem: str = ""
    partial: str = ""
    is_own: bool = True


class ProcessLiveness(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A process at the time of writing.

    Attributes:
        host, pid, process: Where it runs; ``process`` distinguishes it from a later process with the same number.
        written_at: Epoch ms, by its machine's clock. written_boot_ms: The same by a clock that is never set.
        every_ms: How often it is written.
    """

    version: int = VERSION
    host: str
    pid: int
    process: str
    written_at: int
    written_boot_ms: int
    every_ms: int


class CollectorLiveness(ProcessLiveness, kw_only=True, omit_defaults=True):
    """One standalone collector at the time of writing.

    Attributes:
        problem, partial: See ``SourceStatus``.
    """

    cluster: str
    state: Literal["running", "stopped", "finished"]
    problem: str = ""
    partial: str = ""


class ClusterLiveness(msgspec.Struct, kw_only=True, omit_defaults=True):
    """How far a job knows one cluster.

    Attributes:
        known_until: Event time of the newest event that it has applied, or that waits for the lateness; epoch ms.
        newest: Event time of the newest event of all, including events of a clock that is ahead.
        age_ms: How long before the time of writing that event came, by a clock that is never set.
        is_live: Its events came about when they happened; otherwise the input is a recording.
        is_followed: The job's own collector follows it; otherwise its events come from elsewhere.
        behind_ms: How far the newest event was behind the job's clock when it came, while there was more to read.
        problem: Why no events come, as the collector reports it; empty if no problem is known.
        partial: The part of the cluster that does not answer, while the rest does; empty if none.
    """

    cluster: str
    system: str | None = None
    known_until: int
    newest: int
    age_ms: int
    is_live: bool = False
    is_followed: bool = False
    behind_ms: int = 0
    problem: str = ""
    partial: str = ""


class JobLiveness(ProcessLiveness, kw_only=True, omit_defaults=True):
    """One job at the time of writing.

    Attributes:
        app_id: The id of its checkpoint.
        unknown_after_ms: The state of a cluster is unknown this long after the last knowledge of it.
        state, state_since: Its activity, and since when. reason: The reason of a failed job.
        started_at: When the process began.
        batch, batch_since: The running batch, and since when; None if no batch is running.
        clock_step_ms, clock_step_at: By how much this machine's clock was last set ahead or back while the job ran.
    """

    app_id: str
    unknown_after_ms: int
    state: JobState
    state_since: int
    reason: str = ""
    started_at: int
    batch: int | None = None
    batch_since: int | None = None
    clock_step_ms: int = 0
    clock_step_at: int | None = None
    clusters: list[ClusterLiveness] = []


def liveness_place(root: Location, app_id: str) -> Place:
    """Return the file of one job next to its tables."""
    return _folder(root) / f"{app_id}.json"


def _folder(root: Location) -> Place:
    """Return the folder of all jobs; an unavailable store is given up soon."""
    return (StorePath(root, PATIENCE) if isinstance(root, str) else place_of(root)) / FOLDER


def write_liveness(place: Place, job: JobLiveness) -> None:
    """Replace a job's file.

    Raises:
        OSError: It was not written.
    """
    write_whole(place, msgspec.json.encode(job))


def read_liveness(root: Location) -> tuple[list[JobLiveness], str]:
    """Return the liveness of these tables' jobs, and files that could not be read; empty if there are none.

    Raises:
        OSError: The store cannot be read.
    """
    jobs, problem = [], ""
    folder = _folder(root)
    # delta-rs lets other threads run while it waits for this answer, but not while it waits for a listing.
    found: Iterable[Place] = folder.glob("*.json") if folder.exists() else ()
    for file in sorted(found, key=lambda place: place.name):
        try:
            job = msgspec.json.decode(file.read_bytes(), type=JobLiveness)
            if job.version > VERSION:
                problem = f"{file} is of a newer version of the monitor ({job.version}; this one reads {VERSION})"
            else:
                jobs.append(job)
        except FileNotFoundError:
            continue  # it was removed in the meantime
        except msgspec.DecodeError as error:
            problem = f"{file} cannot be read: {error}"
    return jobs, problem


def collector_place(folder: Place, name: str) -> Place:
    """Return the file of a collector next to its events."""
    return folder / COLLECTORS / f"{name}.json"


def write_collector(place: Place, collector: CollectorLiveness) -> None:
    """Replace a collector's file.

    Raises:
        OSError: It was not written.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    write_whole(place, msgspec.json.encode(collector))


def read_collectors(folder: Place) -> list[CollectorLiveness]:
    """Return the liveness of collectors next to their events; unreadable files are left out, as they are only hints.

    Raises:
        OSError: The store cannot be read.
    """
    found: list[CollectorLiveness] = []
    files: Iterable[Place] = (folder / COLLECTORS).glob("*.json")
    for file in sorted(files, key=lambda place: place.name):
        try:
            collector = msgspec.json.decode(file.read_bytes(), type=CollectorLiveness)
        except (FileNotFoundError, msgspec.DecodeError):
            continue
        if collector.version <= VERSION:
            found.append(collector)
    return found
