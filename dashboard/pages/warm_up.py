"""Dashboard: what the first request would wait for, done before the server answers."""

from __future__ import annotations

import jinja2

from dashboard.reading.overview import clusters
from dashboard.reading.queries import QueryTimeoutError
from dashboard.reading.questions import Reading
from streaming.machine.logs import logger

_log = logger("dashboard")


def warm_up(reading: Reading, templates: jinja2.Environment) -> None:
    """Compile the templates, import what DuckDB and Arrow import late, and compute what most pages share."""
    for name in templates.list_templates():
        templates.get_template(name)
    try:
        clusters(reading)
    except (QueryTimeoutError, OSError) as error:
        _log.warning("the first results could not be computed in advance", error=str(error))
