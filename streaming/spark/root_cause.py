"""Shell: why a running job failed, for people, from the errors of Spark and the operating system."""

from __future__ import annotations

import re

WAY_OUT = "nothing is lost: once the cause is removed, the same command continues where this one stopped"
# Tracebacks of Python and Java name an error like this; in both the root cause is the last.
_NAMED = re.compile(
    r"^(?:Caused by: |: |Exception in thread \S+ )?((?:[\w$]+\.)*(?:\w+Error|\w*Exception): .+)$", re.MULTILINE
)
# Each message of the state's errors is one complete line, with place and remedy.
_STATE = re.compile(r"^(?:\w+\.)*State(?:Damaged|Version)Error: (.+?)(?:\s+SQLSTATE: \w+)*$", re.MULTILINE)
_SQLSTATE = re.compile(r"\s+SQLSTATE: \w+")
_FILE = re.compile(r"Encountered error while reading file (\S+)\.\s")
_PLAN = "=== Streaming Query ==="
_ASIDE = ("WARNING:", "NOTE:", "Picked up ")  # the JVM's lines about itself
_LONGEST = 500


def reason(error: BaseException) -> str:
    """Return the root cause in one line.

    Example:
        >>> reason(ValueError("[STREAM_FAILED] Query failed\\njava.lang.X: y\\nCaused by: java.io.IOException: full"))
        'java.io.IOException: full'
    """
    return reason_in(str(error)) or type(error).__name__


def reason_in(output: str) -> str:
    """Return the root cause in an error text, in one line; empty for an empty text."""
    output = output.partition(_PLAN)[0]
    named = _NAMED.findall(output)
    first = next((line for line in output.splitlines() if line.strip() and not line.startswith(_ASIDE)), "")
    cause = _SQLSTATE.sub("", named[-1] if named else first)[:_LONGEST]
    file = _FILE.search(output)
    return f"{cause} ({file[1]})" if file else cause


def state_error(error: BaseException) -> str | None:
    """Return the message about an unreadable state; None if the cause is another one."""
    messages = _STATE.findall(str(error).partition(_PLAN)[0])
    return messages[-1] if messages else None


def is_java_ended(error: BaseException) -> bool:
    """Return whether an error means that Spark's Java has ended."""
    current: BaseException | None = error
    while current is not None:
        if isinstance(current, ConnectionError) or type(current).__name__ == "Py4JNetworkError":
            return True
        current = current.__cause__ or current.__context__
    return False
