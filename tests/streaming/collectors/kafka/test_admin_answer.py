"""Replies to admin requests, and requests that get none."""

from __future__ import annotations

from concurrent.futures import Future

import pytest
from confluent_kafka import KafkaError, KafkaException

from streaming.collectors.kafka import admin_answer
from streaming.collectors.kafka.admin_answer import answer_of


def test_an_answer_and_a_refusal_are_passed_on() -> None:
    answered: Future[int] = Future()
    answered.set_result(7)
    assert answer_of(answered, 1.0) == 7
    refused: Future[int] = Future()
    refused.set_exception(KafkaException(KafkaError(KafkaError._TRANSPORT)))
    with pytest.raises(KafkaException, match="_TRANSPORT"):
        answer_of(refused, 1.0)


def test_a_missing_answer_is_an_error_of_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_answer, "_LONGER_S", 0.0)
    with pytest.raises(KafkaException, match="_TIMED_OUT"):
        answer_of(Future[int](), 0.01)
