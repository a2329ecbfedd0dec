"""The times of histories, in milliseconds."""

from __future__ import annotations

from typing import Any

Event = dict[str, Any]
T0 = 1_700_000_000_000
BATCH_MS = T0 + 10**9  # a recording: far behind the batches that read it
LATENESS_MS = 2_000
METADATA_AGE_MS = 300_000
