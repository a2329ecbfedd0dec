"""Shell: why a request was not accepted, and whether it may be tried again. No I/O."""

from __future__ import annotations

import traceback

# RFC 9110 lets a client retry after these. All other 4xx codes are about the request itself.
_TRANSIENT = frozenset({408, 425, 429})


class DeliveryError(Exception):
    """A request was not accepted.

    Attributes:
        retry_after_ms: The pause that the receiver requests; 0 for none.
        is_refusal: It concerns only this request; the receiver may accept others.
    """

    def __init__(self, reason: str, retry_after_ms: int = 0, *, is_refusal: bool = False) -> None:
        super().__init__(reason)
        self.retry_after_ms = retry_after_ms
        self.is_refusal = is_refusal


def answered(status: int, retry_after_ms: int = 0) -> DeliveryError:
    """Return the error of an unsuccessful HTTP response."""
    is_refusal = 400 <= status < 500 and status not in _TRANSIENT
    return DeliveryError(f"HTTP {status}", retry_after_ms, is_refusal=is_refusal)


def unsendable(error: Exception) -> DeliveryError:
    """Return an unexpected error as that of its message, without its text, which may contain secrets."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return DeliveryError(f"{type(error).__name__} in {last.name}", is_refusal=True)
