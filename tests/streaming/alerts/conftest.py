"""Fixtures of alerts."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.streaming.alerts.hook import Hook


@pytest.fixture
def hook() -> Iterator[Hook]:
    """Return a receiver that runs."""
    with Hook() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()
