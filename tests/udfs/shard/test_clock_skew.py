"""The finding that all clocks of a cluster are ahead of the job's machine."""

import pytest

from tests.corners.corner_run import CornerRun
from tests.udfs.shard.test_cluster_time import FIRST_BATCH_MS, STEP_MS, crew
from udfs.model.journal import FindingChanged, FindingClosed, FindingOpened
from udfs.shard.clock_skew import advance_skew
from udfs.shard.source_gaps import SourceGaps


@pytest.mark.parametrize(("ahead_ms", "opens"), [(-5_000, False), (2_000, False), (2_001, True)])
def test_a_lead_of_more_than_two_seconds_opens_the_finding_once(ahead_ms: int, opens: bool) -> None:
    history = SourceGaps()
    changes = advance_skew(history, "east", ahead_ms, 50_000)
    assert [type(change.body) for change in changes] == [FindingOpened] * opens
    assert advance_skew(history, "east", ahead_ms, 60_000) == []
    for change in changes:
        assert isinstance(change.body, FindingOpened)
        assert "cluster east are 2.0 s ahead" in change.body.message
        assert (change.cluster, change.event_time, change.body.opened_at) == ("east", 50_000, 50_000)


@pytest.mark.parametrize(("ahead_ms", "closes"), [(1_500, False), (1_300, False), (999, True), (-60_000, True)])
def test_a_lead_below_one_second_closes_it_under_its_own_id(ahead_ms: int, closes: bool) -> None:
    history = SourceGaps()
    [opened] = advance_skew(history, "c", 2_500, 50_000)
    changes = advance_skew(history, "c", ahead_ms, 60_000)
    assert [type(change.body) for change in changes] == [FindingClosed] * closes
    for change in changes:
        assert isinstance(change.body, FindingClosed)
        assert isinstance(opened.body, FindingOpened)
        assert (change.body.finding_id, change.body.closed_at) == (opened.body.finding_id, 60_000)
        assert change.number == opened.number + 1
        assert len(advance_skew(history, "c", 9_000, 70_000)) == 1


def test_an_open_finding_has_another_lead_once_it_is_twice_as_long_or_half() -> None:
    history = SourceGaps()
    [opened] = advance_skew(history, "c", 4_000, 50_000)
    assert isinstance(opened.body, FindingOpened)
    changes = [advance_skew(history, "c", ahead_ms, 60_000) for ahead_ms in (7_999, 8_000, 15_000, 4_001, 3_900)]
    assert [len(some) for some in changes] == [0, 1, 0, 0, 1]
    for some, text in ((changes[1], "8.0 s"), (changes[4], "3.9 s")):
        body = some[0].body
        assert isinstance(body, FindingChanged)
        assert text in body.message
        assert (body.finding_id, body.opened_at) == (opened.body.finding_id, 50_000)


def test_a_finding_never_closes_before_it_opened() -> None:
    history = SourceGaps()
    advance_skew(history, "c", 9_000, 50_000)
    [closed] = advance_skew(history, "c", 0, 40_000)
    assert closed.event_time == 50_000


def test_a_cluster_with_all_clocks_ahead_works_and_a_finding_names_by_how_much() -> None:
    run = CornerRun(crew(-5_000, clocks=True), soon=True)
    assert [row["trigger"] for row in run.core.rows()] == ["group_created"]
    found = [row for row in run.tables()["findings"] if row["kind"] == "clocks_ahead"]
    assert [(row["closed_at"], "5.0 s ahead" in row["message"]) for row in found] == [(None, True)]


def test_the_finding_closes_once_the_clocks_are_right() -> None:
    events = crew(-5_000, rounds=4, clocks=True)
    events += [{"t": FIRST_BATCH_MS + wave * STEP_MS, "type": "clock", "wave": wave} for wave in (4, 5, 6)]
    found = [row for row in CornerRun(events, soon=True).tables()["findings"] if row["kind"] == "clocks_ahead"]
    assert [row["closed_at"] is None for row in found] == [False]
