"""Freshness: the evidence of jobs' liveness for the present, and the text where there is none."""

from __future__ import annotations

import os

import msgspec
import pytest

from streaming.machine.process import boot_id, process_identity
from streaming.tables.liveness import CollectorLiveness, JobLiveness, SourceStatus
from streaming.views.freshness import (
    ClusterFreshness,
    Freshness,
    Now,
    collector_status,
    evaluate_liveness,
)
from streaming.views.unwritten_findings import unwritten_rows
from tests.streaming.tables.journals import T0
from tests.streaming.tables.signs import known, sign
from udfs.shard.source_gaps import finding_id

LIVE = known("c1", known_until=T0 - 1_000, age_ms=500, is_live=True)
FOLLOWED = known("c1", known_until=T0 - 1_000, age_ms=500, is_live=True, is_followed=True)


def at(after_ms: int, *jobs: JobLiveness) -> Freshness:
    """Evaluate on another machine, this long after the signs were written."""
    return evaluate_liveness(jobs, Now(T0 + after_ms, 0, "this-boot"))


def text(after_ms: int, *jobs: JobLiveness) -> str:
    return at(after_ms, *jobs).of("c1").text


def test_a_cluster_is_known_for_so_long_after_its_last_event() -> None:
    job = sign(known("c1", known_until=T0 - 1_000, age_ms=29_500, is_live=True), state="running")
    assert text(500, job) == "known"
    assert text(501, job) == "blind since 2025-12-31T23:59:59Z: no event has come since"


def test_a_job_that_gives_no_sign_is_gone_and_takes_its_clusters_with_it() -> None:
    job = sign(LIVE, state="running")
    found = at(30_001, job)
    who = "the job (process 1 on host-1) has not reported since 2026-01-01T00:00:00Z"
    assert (found.jobs[0].state, found.jobs[0].text) == ("gone", who)
    assert found.of("c1").reason == who


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"state": "stopped"}, "the job was stopped at 2026-01-01T00:00:00Z"),
        ({"state": "finished"}, "the job read once, and ended at 2026-01-01T00:00:00Z"),
        ({"state": "failed", "reason": "no space left"}, "the job failed at 2026-01-01T00:00:00Z: no space left"),
    ],
)
def test_a_job_that_has_ended_says_how_and_its_live_clusters_grow_old(fields: dict[str, str], reason: str) -> None:
    job = sign(LIVE, **fields)
    assert text(10_000, job) == "known"
    assert text(40_000, job) == f"blind since 2025-12-31T23:59:59Z: {reason}"


def test_a_recording_that_was_read_once_never_grows_old() -> None:
    found = at(10**9, sign(known("c1"))).of("c1")
    assert (found.text, found.unknown_now()) == ("a recording that ends at 2026-01-01T00:00:00Z", None)


def test_the_same_events_followed_by_a_job_that_goes_on_do_grow_old() -> None:
    assert text(31_000, sign(known("c1"), state="running", written_at=T0 + 30_900)) == "known"
    job = sign(known("c1", age_ms=30_001), state="running")
    assert text(0, job) == "blind since 2026-01-01T00:00:00Z: no event has come since"


@pytest.mark.parametrize(
    ("fields", "of_job", "reason"),
    [
        ({"problem": "the cluster does not answer (timed out)"}, {}, "the cluster does not answer (timed out)"),
        ({}, {}, "the cluster does not answer"),
        ({}, {"state": "starting"}, "the job starts"),
        (
            {},
            {"batch": 7, "batch_since": T0 - 60_000},
            "the job's batch 7 has been running since 2025-12-31T23:59:00Z",
        ),
        (
            {},
            {"clock_step_ms": -3_600_000, "clock_step_at": T0 - 20_000},
            "the clock of host-1 was set back by 1 h 0 min at 2025-12-31T23:59:40Z",
        ),
        ({}, {"clock_step_ms": -3_600_000, "clock_step_at": T0 - 200_000}, "the cluster does not answer"),
    ],
)
def test_the_reason_is_the_nearest_that_is_known(
    fields: dict[str, str], of_job: dict[str, object], reason: str
) -> None:
    cluster = known("c1", age_ms=40_000, is_live=True, is_followed=True, **fields)
    assert at(0, sign(cluster, **{"state": "running", **of_job})).of("c1").reason == reason


def test_a_job_that_catches_up_does_not_show_the_present() -> None:
    behind = known("c1", known_until=T0 - 3_600_000, is_live=True, behind_ms=3_600_000)
    found = text(0, sign(behind, state="running"))
    assert found == "blind since 2025-12-31T23:00:00Z: the job catches up: it has read up to 1 h 0 min ago"


def test_a_part_that_does_not_answer_is_named() -> None:
    found = at(0, sign(known("c1", is_live=True, partial="broker-b: refused"), state="running"))
    assert found.of("c1").text == "partly known: broker-b: refused"
    assert found.of("c1").unknown_now() == found.of("c1").unknown_at(T0, T0, T0) == found.of("c1")
    assert [cluster.cluster for cluster in found.blind()] == ["c1"]


def test_if_two_jobs_know_a_cluster_the_fresher_one_counts() -> None:
    old = sign(LIVE, state="stopped", app_id="old", written_at=T0 - 10**7)
    assert text(0, sign(LIVE, state="running"), old) == "known"
    assert text(0, old, sign(LIVE, state="running")) == "known"


def test_a_cluster_without_a_sign_is_unknown() -> None:
    found = at(0, sign(LIVE, state="running"))
    assert found.of("c9").text == "blind: no job has reported it beside these tables"
    assert [cluster.cluster for cluster in found.blind(["c1", "c9"])] == ["c9"]
    assert (found.known_until("c9", T0), found.known_until("c1", T0)) == (None, T0)


def test_a_sign_from_the_future_proves_nothing() -> None:
    job = sign(LIVE, state="running")
    assert text(-5_000, job) == "known"
    found = text(-60_000, job)
    assert found == (
        "blind since 2025-12-31T23:59:59Z: the job (process 1 on host-1) dates its liveness 1 min 0 s ahead of this"
        " machine's clock: one of the two clocks is wrong"
    )


def test_on_the_same_machine_no_change_of_the_clock_makes_it_older_or_younger() -> None:
    job = sign(LIVE, state="running", process="this-boot pid:[1] 7", written_boot_ms=50_000)
    for set_by_ms in (-3_600_000, 3_600_000):
        found = evaluate_liveness([job], Now(T0 + set_by_ms, 60_000, "this-boot"))
        assert (found.of("c1").state, found.jobs[0].is_alive) == ("known", True)
        direction = "ahead by 59 min 50 s" if set_by_ms > 0 else "back by 1 h 0 min"
        assert found.jobs[0].note == f"the clock of host-1 was set {direction} since 2026-01-01T00:00:00Z"
    assert evaluate_liveness([job], Now(T0, 80_001, "this-boot")).of("c1").state == "unknown"


def test_a_killed_job_of_this_machine_is_distinguished_from_one_that_hangs() -> None:
    here = Now(T0, 100_000, boot_id())
    alive = sign(LIVE, state="running", pid=os.getpid(), process=process_identity(os.getpid()))
    assert evaluate_liveness([alive], here).of("c1").reason.endswith("it hangs, or cannot write beside the tables")
    ours = process_identity(os.getpid()).rsplit(" ", 1)[0]
    dead = sign(LIVE, state="running", pid=os.getpid(), process=f"{ours} 1")
    assert (
        evaluate_liveness([dead], here)
        .of("c1")
        .reason.endswith("has ended without reporting it after 2026-01-01T00:00:00Z: it was killed")
    )


def test_a_problem_that_no_job_can_write_down_is_a_finding() -> None:
    (gone,) = unwritten_rows(at(40_000, sign(LIVE, state="running")), [], {})
    assert (gone["kind"], gone["severity"], gone["opened_at"], gone["closed_at"]) == (
        "job_silent",
        "critical",
        T0,
        None,
    )
    assert gone["message"].startswith(
        "Nothing is known of c1 since 2026-01-01T00:00:00Z: the job (process 1 on host-1)"
    )
    (stopped,) = unwritten_rows(at(40_000, sign(LIVE, state="stopped")), [], {})
    assert (stopped["kind"], stopped["severity"]) == ("job_stopped", "warning")
    assert gone["finding_id"] == unwritten_rows(at(50_000, sign(LIVE, state="running")), [], {})[0]["finding_id"]
    job = sign(known("c1", known_until=T0 - 40_000, age_ms=40_000, is_live=True), state="running")
    (silent,) = unwritten_rows(at(0, job), [], {})
    assert (silent["kind"], silent["cluster"], silent["opened_at"]) == ("source_silent", "c1", T0 - 10_000)
    # The core's own id, so that the row that the job writes is the same finding.
    assert silent["finding_id"] == finding_id("c1", T0 - 10_000)
    assert unwritten_rows(at(0, job), [silent], {}) == []
    assert unwritten_rows(at(10**9, sign(known("c1"))), [], {}) == []


HOUR = 3_600_000
IS_DEAD = at(40_000, sign(LIVE, state="running")).of("c1")


@pytest.mark.parametrize(
    ("found", "at_ms", "first_ms", "text"),
    [
        (at(0, sign(known("c1"))).of("c1"), T0, T0, None),
        (at(0, sign(known("c1"))).of("c1"), T0 + 1, T0, "blind: nothing is known after 2026-01-01T00:00:00Z"),
        (at(0, sign(known("c1"))).of("c1"), T0 - 1, T0, "blind: nothing is known before 2026-01-01T00:00:00Z"),
        (at(0, sign(known("c1"))).of("c1"), T0 - 1, None, "blind: nothing is known before 2026-01-01T00:00:00Z"),
        (at(0, sign(LIVE, state="running")).of("c1"), T0 + HOUR, T0 - HOUR, None),
        (
            at(0, sign(LIVE, state="running")).of("c1"),
            T0 + HOUR + 1,
            T0 - HOUR,
            "blind: nothing is known after 2026-01-01T01:00:00Z",
        ),
        (IS_DEAD, T0 - 1_000, T0 - HOUR, None),
        (IS_DEAD, T0 - HOUR - 1, T0 - HOUR, "blind: nothing is known before 2025-12-31T23:00:00Z"),
        (IS_DEAD, T0 - 999, T0 - HOUR, IS_DEAD.text),
    ],
)
def test_a_time_before_the_first_knowledge_or_after_the_last_is_unknown(
    found: ClusterFreshness, at_ms: int, first_ms: int | None, text: str | None
) -> None:
    unknown = found.unknown_at(at_ms, first_ms, T0 + HOUR)
    assert (unknown and unknown.text) == text


def collector(**fields: object) -> CollectorLiveness:
    """Return the sign of a collector on another machine that lives, unless fields say otherwise."""
    made = CollectorLiveness(
        cluster="c1",
        host="host-2",
        pid=2,
        process="other-boot pid:[1] 7",
        written_at=T0,
        written_boot_ms=0,
        every_ms=5_000,
        state="running",
    )
    return msgspec.structs.replace(made, **fields)


def here(**fields: object) -> CollectorLiveness:
    """Return the sign of a collector that is this process."""
    return collector(pid=os.getpid(), process=process_identity(os.getpid()), **fields)


@pytest.mark.parametrize(
    ("liveness", "after_ms", "problem"),
    [
        (collector(), 15_000, ""),
        (collector(problem="the cluster does not answer"), 15_000, "the cluster does not answer"),
        (collector(), 15_001, "its collector (process 2 on host-2) has not reported since 2026-01-01T00:00:00Z"),
        (collector(state="stopped"), 0, "its collector was stopped at 2026-01-01T00:00:00Z"),
        (collector(state="finished"), 10**9, "its collector read once, and ended at 2026-01-01T00:00:00Z"),
    ],
)
def test_a_collector_that_runs_alone_says_why_nothing_comes(
    liveness: CollectorLiveness, after_ms: int, problem: str
) -> None:
    found = collector_status(liveness, Now(T0 + after_ms, 0, "this-boot"))
    assert found == SourceStatus("c1", problem, is_own=False)


def test_a_collector_of_this_machine_that_is_silent_was_killed_or_hangs() -> None:
    now = Now(T0, 100_000, boot_id())
    assert "hangs, or cannot write beside the events" in collector_status(here(), now).problem
    gone = msgspec.structs.replace(here(), process=f"{' '.join(here().process.split()[:2])} 1")
    assert collector_status(gone, now).problem.endswith("after 2026-01-01T00:00:00Z: it was killed")
