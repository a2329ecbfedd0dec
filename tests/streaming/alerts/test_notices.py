"""Notices: safe texts of findings, and findings that are sent together."""

from __future__ import annotations

from streaming.alerts.notices import LONGEST_NAME, LONGEST_TEXT, bundled, notice_of
from tests.dashboard.hostile import HOSTILE
from tests.streaming.alerts.planted import finding
from tests.streaming.tables.journals import T0


def test_texts_of_a_finding_are_printable_and_cut() -> None:
    for name in HOSTILE:
        notice = notice_of(finding("f", group=name, cluster=name, message=name * 9, advice=name), "opened")
        assert all(text.isprintable() for text in (notice.group_id, notice.cluster, notice.message, notice.advice))
        assert len(notice.group_id) <= LONGEST_NAME
        assert len(notice.message) <= LONGEST_TEXT
        assert notice.key == (name, name, "duplicate_ids")


def test_a_finding_of_a_cluster_has_an_empty_group() -> None:
    notice = notice_of(finding("f", group=None), "opened")
    assert (notice.group_id, notice.shown()["closed_at"], notice.shown()["opened_at"]) == (
        "",
        None,
        "2026-01-01T00:00:00.000Z",
    )


def test_findings_of_one_group_go_out_together_opened_ones_first() -> None:
    notices = [
        notice_of(finding("c", closed_at=T0 + 5), "closed"),
        notice_of(finding("b", opened_at=T0 + 1), "opened"),
        notice_of(finding("a", opened_at=T0 + 1, severity="warning"), "opened"),
        notice_of(finding("x", group="another"), "opened"),
    ]
    found = bundled(notices, 50)
    assert [[notice.finding_id for notice in bundle.notices] for bundle in found] == [["x"], ["a", "b", "c"]]
    assert (found[1].status, found[1].severity) == ("opened", "critical")
    assert bundled(notices[:1], 50)[0].status == "closed"


def test_names_that_are_equal_once_cut_stay_two_groups() -> None:
    long = "x" * 10_000
    notices = [notice_of(finding(name, group=long + name), "opened") for name in "ab"]
    assert len(bundled(notices, 50)) == 2


def test_the_identity_of_a_message_is_that_of_its_findings_and_their_status() -> None:
    opened, closed = notice_of(finding("f"), "opened"), notice_of(finding("f", closed_at=T0), "closed")
    first, second = (bundled([notice], 50)[0] for notice in (opened, closed))
    assert first.identity == bundled([opened], 50)[0].identity != second.identity
