"""What goes on in a thread of its own beside a live test: any work again and again, or messages to topics."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from confluent_kafka import Producer

from tests.kit.brokers import Broker


@contextmanager
def repeated(work: Callable[[], None], every_s: float) -> Iterator[None]:
    """Do something again and again, in a thread of its own."""
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(every_s):
            work()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def messages(broker: Broker, topics: Sequence[str], partitions: int, every_s: float) -> Iterator[None]:
    """Send a message to each partition of topics again and again: libraries commit what they have read."""
    producer = Producer({**broker.client_settings(), "linger.ms": "0"})

    def send() -> None:
        for topic in topics:
            for partition in range(partitions):
                producer.produce(topic, b"m", partition=partition)
        producer.poll(0)

    with repeated(send, every_s):
        yield
    producer.flush(10)
