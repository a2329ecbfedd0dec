"""Shell: structured logs on stderr; text for people on a terminal, JSON lines elsewhere."""

from __future__ import annotations

import logging
import sys
from typing import Literal

import structlog

Level = Literal["debug", "info", "warning", "error"]


def configure(level: Level, form: Literal["auto", "text", "json"]) -> None:
    """Send every log line of this process to stderr, in one form.

    The JSON lines have the fields of Spark's own structured log: ``ts``, ``level``, ``msg``, ``logger``, and further
    keys like those in ``context``.
    """
    as_text = form == "text" or (form == "auto" and sys.stderr.isatty())
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="ts"),
        structlog.processors.format_exc_info,
    ]
    if not as_text:
        shared.append(structlog.processors.EventRenamer("msg"))
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer(timestamp_key="ts") if as_text else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # Spark's errors are also raised as the query's exception.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    root.addFilter(_is_worth_logging)


def _is_worth_logging(record: logging.LogRecord) -> bool:
    """Drop py4j's messages on the root logger about releasing objects of a JVM that has ended."""
    return record.msg != "Exception while sending command."


def logger(name: str) -> structlog.stdlib.BoundLogger:
    """Return the logger of a part of the shell."""
    found: structlog.stdlib.BoundLogger = structlog.get_logger(name)
    return found


# Kafka's C client writes its own log; important errors reach the callers as exceptions.
LIBRDKAFKA = logging.getLogger("librdkafka")
LIBRDKAFKA.setLevel(logging.CRITICAL)
