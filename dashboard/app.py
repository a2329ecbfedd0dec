"""Dashboard: the application: its routers, their shared state, and the security frame around them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio.to_thread
import jinja2
from anyio.to_thread import run_sync
from fastapi import APIRouter, FastAPI
from starlette.routing import Route

from dashboard.api import annotation_hook, burrow, question_answers
from dashboard.api import routes as api
from dashboard.api.annotation_hook import AnnotationHook
from dashboard.live import stream
from dashboard.live.table_poller import TablePoller
from dashboard.mcp.mcp_endpoint import McpEndpoint
from dashboard.mcp.source import Source, ToolSettings
from dashboard.metrics import router as metrics_router
from dashboard.metrics.file_sums import FileSums
from dashboard.pages import (
    advice_pages,
    job_columns,
    login,
    page_columns,
    question_pages,
    search_page,
    static_files,
    topic_columns,
    what_if_page,
)
from dashboard.pages import page_routes as pages
from dashboard.pages.errors import add_errors
from dashboard.pages.templating import environment
from dashboard.reading.overview import clusters
from dashboard.reading.queries import QueryTimeoutError
from dashboard.reading.questions import Reading
from dashboard.reading.snapshots import TableSnapshots
from dashboard.security.frame import MCP, SecurityFrame
from dashboard.security.rate_limit import RateLimit
from streaming.alerts.follower import AlertsStatus
from streaming.machine.http_access import AllowedHosts
from streaming.machine.logs import logger
from streaming.settings.locations import Location
from streaming.settings.model import Dashboard, Metrics, Widespread, load
from streaming.views.related_annotations import DEFAULT_SPANS, AnnotationSpans

# At most this many queries run at the same time; others wait.
THREADS = 8
# If the store is slower than this, the server answers before it is warm.
MAX_WARM_UP_S = 5.0
_log = logger("dashboard")
ROUTERS: Sequence[APIRouter] = (
    stream.router,
    pages.router,
    advice_pages.router,
    what_if_page.router,
    question_pages.router,
    search_page.router,
    login.router,
    static_files.router,
    question_answers.router,
    api.router,
    burrow.router,
    metrics_router.router,
    annotation_hook.router,
)


def create_app(
    root: Location,
    settings: Dashboard,
    *,
    metrics: Metrics | None = None,
    widespread: Widespread | None = None,
    alerts: AlertsStatus | None = None,
    near: AnnotationSpans = DEFAULT_SPANS,
    hook: AnnotationHook | None = None,
    tools: ToolSettings | None = None,
    must_exist: bool = True,
) -> SecurityFrame:
    """Return the application over the tables below a folder.

    Routers find in ``request.app.state``: ``reading`` (access to the tables), ``settings``, ``metrics`` (settings of
    metrics), ``sums`` (the metrics' cached sums of tables), ``budget_s`` (of a group and day), ``core`` (the
    settings by which groups are decided), ``alerts``, ``poller``, ``templates``.

    Args:
        metrics, widespread: The sections of these names; None for their defaults.
        alerts: The alerts that this process sends; None if it sends none.
        near: Which annotations are near something. hook: Takes annotations; None if nobody may write any.
        tools: Settings of the tools at `/mcp`; None for their defaults.
        must_exist: False if the job that writes the tables may start later.

    Raises:
        NoTablesError: There are no tables yet.
    """
    reading = Reading.of(root, settings, widespread=widespread, near=near, must_exist=must_exist)
    tools = tools or ToolSettings.of(load())
    endpoint = McpEndpoint(Source(reading, tools))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        assert isinstance(reading.tables, TableSnapshots)
        anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
        warming = asyncio.create_task(run_sync(warm_up, reading, app.state.templates))
        # The server answers only after this, because the first request would compute the same and compete for the
        # cores.
        await asyncio.wait({warming}, timeout=MAX_WARM_UP_S)
        poller = TablePoller(reading.tables, settings.poll_interval_ms / 1000)
        async with poller, endpoint:
            app.state.poller = poller
            yield
        # If the interpreter ends while a thread reads, delta-rs crashes.
        await asyncio.wait({warming})

    app = FastAPI(
        title="Rebalance monitor",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/v1/openapi.json",
        lifespan=lifespan,
    )
    app.state.reading, app.state.settings, app.state.streams = reading, settings, 0
    app.state.metrics, app.state.sums = metrics or load().metrics, FileSums()
    app.state.budget_s = tools.check.queue_outage_s_per_day_critical
    app.state.core = tools.core
    app.state.alerts = alerts or AlertsStatus()
    app.state.annotation_hook = hook
    app.state.templates = environment()
    columns = {"columns_of": page_columns, "job_columns": job_columns, "topic_columns": topic_columns}
    app.state.templates.globals.update(columns)
    add_errors(app)
    for router in ROUTERS:
        app.include_router(router)
    app.router.routes.append(Route(MCP, endpoint, methods=["POST"]))
    return SecurityFrame(
        app,
        token=settings.token.get_secret_value(),
        annotation_token=hook.token if hook is not None else "",
        hosts=AllowedHosts(settings.host, settings.allowed_hosts),
        limit=RateLimit(settings.requests_per_second),
        timeout_s=2 * settings.query_timeout_ms / 1000,
        state=app.state,
    )


def warm_up(reading: Reading, templates: jinja2.Environment) -> None:
    """Compile the templates, import what DuckDB and Arrow import late, and compute what most pages share."""
    for name in templates.list_templates():
        templates.get_template(name)
    try:
        clusters(reading)
    except (QueryTimeoutError, OSError) as error:
        _log.warning("the first results could not be computed in advance", error=str(error))
