"""Shell: errors of stores in one line, without colours, signatures and secrets."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

_COLOUR = re.compile(r"\x1b\[\d+m")
# A signature may follow the question mark.
_QUERY = re.compile(r"(https?://[^\s?]+)\?\S*")
_ANSWER = re.compile(r"<Code>([^<]*)</Code>.*?(?:<Message>([^<]*)</Message>|$)", re.DOTALL)
_REFUSED = re.compile(r"\b(401|403) |privileges|Unauthenticated|Unauthorized|PermissionDenied|AccessControlException")
# These failures pass by themselves: the server is unavailable or overloaded, or HDFS is starting.
_AWAY = re.compile(
    r"\b(?:50[0234]|408|429) [A-Z]|Status Code: 50[0234]|error sending request|timed out|SocketTimeout|dns error"
    r"|UnknownHost|failed to lookup address|[Cc]onnection (?:refused|reset|aborted)|[Uu]nreachable|NoRouteToHost"
    r"|communicating with HDFS|SafeModeException|StandbyException|could only be written to 0 of"
)
# Arrow passes on errors of the reader of files, without their kind.
_FILE_READER = "Object Store error"
# Requests that were not sent for another reason: no TLS there, or a certificate that is not trusted here; a cloud
# machine without an identity, for which its metadata server has no credentials.
NO_TLS = re.compile(r"InvalidContentType|invalid peer certificate(?!: Expired)")
NO_CREDENTIALS = re.compile(r"no credentials found in chain|://(?:169\.254\.|metadata\.)")
# Some errors end with a stack trace of the client's threads or of a name node.
_STACK = re.compile(r"\n\s*(?:0: |at [\w.$/]+\().*", re.DOTALL)
_SEQUENCE = re.compile(r"\s*(?:↳|\n)\s*")


class StoreAwayError(OSError):
    """A store that does not answer, or fails temporarily; the same request may succeed later unchanged."""


def is_passing(reason: str) -> bool:
    """Return whether the reason of a failure is an unavailable store.

    Example:
        >>> is_passing("tcp connect error: Connection refused (os error 111)"), is_passing("NoSuchBucket: lake")
        (True, False)
    """
    return bool(_AWAY.search(reason)) and not NO_TLS.search(reason) and not NO_CREDENTIALS.search(reason)


def is_unreadable(error: Exception) -> bool:
    """Return whether tables could not be read; readers raise different errors for an unavailable store.

    Example:
        >>> is_unreadable(ValueError("Parquet error: Object Store error: Object at location /t/a.parquet not found"))
        True
    """
    text = str(error)
    return isinstance(error, OSError) or is_of_delta(error) or is_passing(text) or _FILE_READER in text


def reason_of(error: Exception) -> str:
    """Return why tables could not be read, in one line."""
    return (error.strerror if isinstance(error, OSError) else None) or one_line(error)


def one_line(error: BaseException) -> str:
    """Return what a store or its client reported."""
    text = _STACK.sub("", _QUERY.sub(r"\1", _COLOUR.sub("", str(error))))
    answer = _ANSWER.search(text)
    if answer is not None:
        return " ".join(": ".join(filter(None, answer.groups())).split())
    parts = [part.strip() for part in _SEQUENCE.split(text) if part.strip()]
    return ": ".join(dict.fromkeys(parts))


@contextmanager
def store_error(uri: str) -> Iterator[None]:
    """Convert errors of a store's client to an ``OSError`` of the system's kind with a one-line ``strerror``.

    Raises:
        FileNotFoundError, PermissionError, StoreAwayError, OSError
    """
    try:
        yield
    except Exception as error:
        is_of_system = isinstance(error, OSError) and error.errno is not None
        if is_of_system or not (isinstance(error, OSError) or is_of_delta(error)):
            raise
        raise _as_of_the_system(error, uri) from None


def is_of_delta(error: Exception) -> bool:
    """Return whether delta-rs has raised the error."""
    # Spark's workers import this module; deltalake is large, and it is loaded only in processes that use a store.
    from deltalake.exceptions import DeltaError

    return isinstance(error, DeltaError)


def _as_of_the_system(error: Exception, uri: str) -> OSError:
    reason = one_line(error)
    if "NoSuchBucket" not in str(error) and isinstance(error, FileNotFoundError):
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), uri)
    if _REFUSED.search(str(error)):
        return PermissionError(errno.EACCES, reason, uri)
    if is_passing(str(error)):
        return StoreAwayError(errno.EIO, reason, uri)
    return OSError(errno.EIO, reason, uri)
