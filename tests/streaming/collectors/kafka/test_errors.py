"""Failures of a query that pass by themselves, and failures that do not."""

from __future__ import annotations

import pytest

from streaming.collectors.kafka.errors import connection_error

# Texts of pyspark's errors.
AWAY = """[STREAM_FAILED] Query [id = 3cc8, runId = c40b] terminated with exception: An error occurred in the user
provided function in foreach batch sink. Reason: Job aborted due to stage failure: Task 0 in stage 12.0 failed 1 times,
most recent failure: Lost task 0.0 in stage 12.0 (TID 8) (192.0.2.2 executor driver):
org.apache.kafka.common.errors.TimeoutException: Timeout of 60000ms expired before the position for partition
__consumer_offsets-0 could be determined"""


@pytest.mark.parametrize(
    "message",
    [
        AWAY,
        "org.apache.kafka.common.KafkaException: Failed to construct kafka consumer",
        "org.apache.kafka.common.errors.SaslAuthenticationException: Authentication failed",
        "org.apache.kafka.common.errors.GroupAuthorizationException: Not authorized to access group: g",
        "org.apache.kafka.common.errors.DisconnectException",
        "java.util.concurrent.TimeoutException: Cannot fetch record for offset 7 in 120000 milliseconds",
    ],
)
def test_a_broker_that_is_away_or_refuses_may_come_back(message: str) -> None:
    assert connection_error(RuntimeError(message)) is not None


@pytest.mark.parametrize(
    "message",
    [
        "org.apache.spark.SparkException: Job aborted due to stage failure: java.lang.OutOfMemoryError",
        "java.util.concurrent.TimeoutException: Futures timed out",
        "org.apache.kafka.common.errors.RecordTooLargeException",
        "InvariantError: generation: expected 3, got 2",
    ],
)
def test_a_permanent_failure_is_not_retried(message: str) -> None:
    assert connection_error(RuntimeError(message)) is None


def test_the_brokers_error_is_one_line() -> None:
    assert connection_error(RuntimeError(AWAY)) == (
        "org.apache.kafka.common.errors.TimeoutException: Timeout of 60000ms expired before the position for partition"
    )


def test_the_cause_of_a_cause_counts() -> None:
    error = RuntimeError("the batch failed")
    error.__cause__ = ValueError(AWAY)
    assert connection_error(error) is not None
