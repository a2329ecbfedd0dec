"""Checks of the tables after a story."""

from __future__ import annotations

from datetime import datetime

from tests.live.job import RunningJob
from tests.live.story import Step, Story
from tests.live.tables import Row

_UUID_LENGTH = 36
_TIMES = ("began_at", "joined_at", "event_time", "detected_at")


def check_story(job: RunningJob, story: Story) -> None:
    """Check that each completed generation is one row with its cause, and assigned what the members report."""
    generations = job.generations(story.group)
    wanted = {step.generation: step for step in story.steps}
    assert sorted(generations) == sorted(wanted), {number: row["triggers"] for number, row in generations.items()}
    spans = [row for row in job.rows("assignments") if row["group_id"] == story.group]
    reported = [row for row in spans if row["origin"] == "reported"]
    computed = [row for row in spans if row["origin"] == "computed"]
    assert job.rows("rejected_events") == []
    for number, step in sorted(wanted.items()):
        row = generations[number]
        assert _causes(row) == step.triggers, (step.what, row["triggers"], {name: row[name] for name in _TIMES})
        if step.matched is not None:
            assert {cause["topic"] for cause in row["triggers"]} == {step.matched}, (step.what, row["triggers"])
        assert row["status"] == "completed", (step.what, row["error"])
        assert row["generation_source"] == "reported"
        assert row["members_after"] == len(step.given)
        unanswered = {member for member, queues in step.given.items() if queues is None}
        assert _held(reported, row, unanswered) == _given(step), step.what
        if step.is_stale:
            assert (row["agrees"], row["agrees_reason"]) == (None, "leader_metadata_stale"), (step.what, row)
        elif step.given:
            assert job.agrees(row), (step.what, row)
            assert _held(computed, row, unanswered) == _given(step), step.what


def held_at(spans: list[Row], time: datetime) -> dict[str, list[tuple[str, int]]]:
    """Return who held what at a moment."""
    held: dict[str, list[tuple[str, int]]] = {}
    for span in spans:
        if span["valid_from"] <= time and (span["valid_to"] is None or time < span["valid_to"]):
            held.setdefault(span["member_id"], []).append((span["topic"], span["queue_id"]))
    return {member: sorted(queues) for member, queues in held.items()}


def _held(spans: list[Row], row: Row, unanswered: set[str]) -> dict[str, list[tuple[str, int]]]:
    held = held_at(spans, row["event_time"])
    return {member: queues for member, queues in held.items() if member not in unanswered}


def _causes(row: Row) -> frozenset[tuple[str, str | None]]:
    """Return the kinds of cause, and members: a member id is the client's or the instance's, `-`, a UUID."""
    named = [(trigger["kind"], trigger["member_id"]) for trigger in row["triggers"]]
    return frozenset((kind, None if member is None else member[: -_UUID_LENGTH - 1]) for kind, member in named)


def _given(step: Step) -> dict[str, list[tuple[str, int]]]:
    return {member: sorted(queues) for member, queues in step.given.items() if queues}
