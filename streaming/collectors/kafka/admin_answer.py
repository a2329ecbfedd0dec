"""Shell: what an admin request of ``confluent_kafka`` answers."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException

AnswerT = TypeVar("AnswerT")
# The client ends a request at its timeout and gives the reason, so that is awaited.
_LONGER_S = 5.0


def answer_of(request: Future[AnswerT], timeout_s: float) -> AnswerT:
    """Wait for the answer of a request that was given a timeout.

    Raises:
        KafkaException: The cluster cannot be reached, or refuses.
    """
    try:
        return request.result(timeout_s + _LONGER_S)
    except TimeoutError:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from None
