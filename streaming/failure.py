"""Shell: why a running job failed, in words for people, out of what Spark and the operating system say."""

from __future__ import annotations

import re

WAY_OUT = "nothing is lost: when the cause is gone, the same command goes on where this one stopped"
# How tracebacks of Python and of Java name an error; in both the cause of all stands last.
_NAMED = re.compile(
    r"^(?:Caused by: |: |Exception in thread \S+ )?((?:[\w$]+\.)*(?:\w+Error|\w*Exception): .+)$", re.MULTILINE
)
_SQLSTATE = re.compile(r"\s+SQLSTATE: \w+")
_FILE = re.compile(r"Encountered error while reading file (\S+)\.\s")
_PLAN = "=== Streaming Query ==="
_ASIDE = ("WARNING:", "NOTE:", "Picked up ")  # of the JVM, about itself
_LONGEST = 500


def reason(error: BaseException) -> str:
    """Answer the cause of all, in one line.

    Example:
        >>> reason(ValueError("[STREAM_FAILED] Query failed\\njava.lang.X: y\\nCaused by: java.io.IOException: full"))
        'java.io.IOException: full'
    """
    return reason_in(str(error)) or type(error).__name__


def reason_in(said: str) -> str:
    """Answer the cause of all in what was said, in one line; empty when nothing was."""
    said = said.partition(_PLAN)[0]
    named = _NAMED.findall(said)
    first = next((line for line in said.splitlines() if line.strip() and not line.startswith(_ASIDE)), "")
    cause = _SQLSTATE.sub("", named[-1] if named else first)[:_LONGEST]
    file = _FILE.search(said)
    return f"{cause} ({file[1]})" if file else cause


def is_java_gone(error: BaseException) -> bool:
    """Say whether an error is that Spark's Java has ended."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ConnectionError) or type(seen).__name__ == "Py4JNetworkError":
            return True
        seen = seen.__cause__ or seen.__context__
    return False
