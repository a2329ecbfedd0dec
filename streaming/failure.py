"""Shell: why a running job failed, in words for people, out of what Spark and the operating system say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from streaming.logs import logger

if TYPE_CHECKING:
    from streaming.settings import Settings

# How tracebacks of Python and of Java name an error; in both the cause of all stands last.
_NAMED = re.compile(r"^(?:Caused by: )?(?:[\w$]+\.)*\w*(?:Error|Exception): .+$", re.MULTILINE)
_SQLSTATE = re.compile(r"\s+SQLSTATE: \w+")
_PLAN = "=== Streaming Query ==="
_LONGEST = 500
_log = logger("job")


class JobFailedError(Exception):
    """A job that could not go on; the message says why, and that the next start goes on."""


@contextmanager
def failures_in_words(settings: Settings) -> Iterator[None]:
    """Let what makes the job fail inside come out as a JobFailedError; the traceback is logged for debugging.

    Raises:
        JobFailedError: The query failed, or a disk would not.
    """
    from pyspark.errors import StreamingQueryException

    try:
        yield
    except (StreamingQueryException, OSError) as error:
        _log.debug("the job failed", exc_info=True)
        checkpoint = settings.job.checkpoint.absolute()
        raise JobFailedError(
            f"the job stopped: {reason(error)}\n"
            f"  tables: {settings.job.tables.absolute()}\n"
            f"  checkpoint: {checkpoint} (spark.log there tells all)\n"
            "  Nothing is lost: when the cause is gone, the same command goes on where this one stopped."
        ) from error


def reason(error: BaseException) -> str:
    """Answer the cause of all, in one line.

    Example:
        >>> reason(ValueError("[STREAM_FAILED] Query failed\\njava.lang.X: y\\nCaused by: java.io.IOException: full"))
        'java.io.IOException: full'
    """
    said = str(error).partition(_PLAN)[0]
    named = _NAMED.findall(said)
    first = next((line for line in said.splitlines() if line.strip()), type(error).__name__)
    return _SQLSTATE.sub("", (named[-1] if named else first).removeprefix("Caused by: "))[:_LONGEST]
