"""Pauses of channels, and the messages that they refused."""

from __future__ import annotations

from streaming.alerts.notices import notice_of
from streaming.alerts.retries import Backoff, Retries
from tests.streaming.alerts.planted import finding

A, B = (notice_of(finding(name), "opened") for name in "ab")


def test_pauses_double_up_to_the_longest_and_end_with_a_success() -> None:
    backoff = Backoff(1_000, 5_000)
    assert [backoff.failed("a", 0) for _ in range(5)] == [1_000, 2_000, 4_000, 5_000, 5_000]
    assert not backoff.may_try("a", 4_999)
    assert backoff.may_try("a", 5_000)
    assert backoff.may_try("b", 0)
    backoff.succeeded("a")
    assert backoff.may_try("a", 0)
    assert backoff.failed("a", 0, 3_000) == 3_000
    assert [backoff.failed("a", 0) for _ in range(40)][-1] == 5_000


def test_a_refusal_pauses_its_findings_alone_and_a_failure_the_channel() -> None:
    retries = Retries(1_000, 5_000)
    retries.failed([A], 0, 0)
    assert not retries.may_try(999)
    assert retries.refused([A], 0, 0) == 1_000
    assert retries.may_try(0)
    assert (retries.is_due(("a", "opened"), 999), retries.is_due(("a", "opened"), 1_000)) == (False, True)
    assert retries.is_due(("a", "closed"), 0)
    assert (retries.is_refused(("a", "opened")), retries.is_refused(("b", "opened"))) == (True, False)
    assert (retries.attempts([A, B]), retries.attempts([B])) == (2, 0)


def test_messages_that_are_no_longer_due_are_forgotten() -> None:
    retries = Retries(1_000, 5_000)
    retries.refused([A, B], 0, 0)
    retries.keep({("b", "opened")})
    assert (retries.attempts([A]), retries.attempts([B])) == (0, 1)
    assert (retries.is_refused(("a", "opened")), retries.is_refused(("b", "opened"))) == (False, True)
