"""Shell: every setting, read once from conf/default.toml, a user's file, the environment and the command line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pydantic
from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, field_validator

from streaming.settings.alerts import Alerts
from streaming.settings.clusters import Clusters, Kubernetes
from streaming.settings.conf_files import conf_file
from streaming.settings.defaults import core_config_of
from streaming.settings.errors import SettingsError, problem_text
from streaming.settings.layers import Layer, Origins, merge_layer, read_dotted, read_environment, read_file
from streaming.settings.locations import STORE_VARIABLES, Location, folder_of, tables_of
from streaming.settings.sections import (
    CENTURY_MS,
    LONG_MAX,
    SECRET_OPTIONS,
    BearerToken,
    Bytes,
    ClientOptions,
    Count,
    Hours,
    KafkaAddress,
    Pattern,
    Section,
    SomeCount,
    SomeSpan,
    Span,
)
from udfs.model.config import CoreConfig
from udfs.model.systems import SYSTEMS

SHORTEST_TOKEN = 16


class JobSettings(Section):
    tables: Annotated[Location, BeforeValidator(tables_of)]
    checkpoint: Annotated[Location, BeforeValidator(folder_of)]
    trigger_interval_ms: Span
    liveness_interval_ms: Annotated[SomeSpan, Field(le=60_000)]
    materialize_interval_ms: Span
    stop_timeout_ms: Span
    max_files_per_batch: SomeCount
    max_offsets_per_batch: int = Field(ge=1, le=LONG_MAX)


class Time(Section):
    allowed_lateness_ms: Span
    max_clock_skew_ms: Span
    silence: Literal["wait", "expire"]
    source_silent_after_ms: SomeSpan
    settle_ms: Span
    repeat_span_ms: Span
    forget_after_ms: SomeSpan
    queue_progress_ms: Span


_TIMEOUTS: dict[str, Any] = {f"{system}_ms": (SomeSpan, ...) for system in SYSTEMS}

if TYPE_CHECKING:

    class SessionTimeouts(Section):
        """One key for each system."""

    class UnreadAfter(Section):
        """One key for each system."""

else:
    SessionTimeouts = pydantic.create_model("SessionTimeouts", __base__=Section, **_TIMEOUTS)
    UnreadAfter = pydantic.create_model("UnreadAfter", __base__=Section, **_TIMEOUTS)


class Limits(Section):
    max_event_bytes: Annotated[Count, Field(ge=1024)]
    raw_limit_bytes: Count
    max_departed_members: Count
    max_group_work: SomeCount
    max_waiting_events: SomeCount
    max_progress_queues: SomeCount


class State(Section):
    shards: int = Field(ge=1, le=65_536)
    shuffle_partitions: int = Field(ge=1, le=65_536)


class Strategies(Section):
    vote_tie_order: Literal["1.0", "4.x"]


class Findings(Section):
    flapping_within_ms: SomeSpan
    flapping_rebalances: SomeCount
    flapping_factor: float = Field(ge=0, le=1_000_000, allow_inf_nan=False)
    flapping_after_ms: Span
    flapping_history_ms: SomeSpan
    flapping_always: int = Field(ge=1, le=10_000)
    stuck_after_ms: SomeSpan
    stalled_after_ms: SomeSpan
    stalled_factor: float = Field(ge=1, le=1_000_000, allow_inf_nan=False)
    stalled_first_ms: SomeSpan
    retention_risk_share: float = Field(ge=0, le=1, allow_inf_nan=False)


class EventsFolder(Section):
    folder: Annotated[Location, BeforeValidator(lambda value: value and folder_of(value))]


class KafkaEvents(ClientOptions):
    topic: str
    bootstrap_servers: KafkaAddress


class EventLogLimits(Section):
    memory_bytes: Bytes
    segment_bytes: Annotated[Bytes, Field(ge=1)]
    retention_ms: Span
    unread_retention_ms: Span
    retention_bytes: Bytes
    retention_at_least_ms: Span

    def bounds(self) -> dict[str, Any]:
        """Return the limits of the event log; a 0 in the settings, meaning no limit, becomes None."""
        unbounded = ("retention_ms", "unread_retention_ms", "retention_bytes")
        return {name: None if name in unbounded and not value else value for name, value in self}


def _store_variable(name: str) -> str:
    if not name.upper().startswith(STORE_VARIABLES):
        raise ValueError(f"is not an option of a store: their names begin with {', '.join(STORE_VARIABLES)}")
    return name.upper()


class Storage(ClientOptions):
    """Options of stores, by the names of their users' environment variables; in capitals, as delta-rs reads them."""

    options: dict[Annotated[str, AfterValidator(_store_variable)], SecretStr]


class Tables(Section):
    writer: Literal["auto", "delta-rs", "delta-spark"]
    spark_interval_ms: Span
    vacuum_after_hours: Hours


class Retention(Section):
    rebalances_hours: Hours
    assignments_hours: Hours
    members_hours: Hours
    topics_hours: Hours
    findings_hours: Hours
    rejected_events_hours: Hours
    group_minutes_hours: Hours
    audits_hours: Hours
    annotations_hours: Hours
    episodes_hours: Hours
    changes_hours: Hours
    queue_progress_hours: Hours
    replays_hours: Hours
    replay_groups_hours: Hours

    def keep_ms(self) -> dict[str, int]:
        """Return how long rows of a table are kept, by its name; tables that are kept forever are left out."""
        return {name.removesuffix("_hours"): hours * 3_600_000 for name, hours in self if hours}


Objective = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]


class Check(Section):
    window_ms: SomeSpan
    ignored_findings: list[str]
    rebalances_per_hour_warning: Objective
    rebalances_per_hour_critical: Objective
    queue_outage_s_warning: Objective
    queue_outage_s_critical: Objective
    queue_outage_s_per_day_warning: Objective
    queue_outage_s_per_day_critical: Objective
    source_delay_s_warning: Objective
    source_delay_s_critical: Objective
    blind_state: Literal["unknown", "critical"]


class Widespread(Section):
    kinds: tuple[str, ...]
    share: float = Field(ge=0, le=1, allow_inf_nan=False)
    min_groups: SomeCount
    span_ms: Span


class Spark(Section):
    master: str
    driver_memory: str
    conf: dict[str, str]


class Log(Section):
    level: Literal["debug", "info", "warning", "error"]
    format: Literal["auto", "text", "json"]


class Metrics(Section):
    host: Annotated[str, Field(min_length=1)]
    port: Annotated[int, Field(ge=0, le=65_535)]
    groups: tuple[Pattern, ...]
    max_groups: Count
    max_clusters: Count


def _long_enough(token: SecretStr) -> SecretStr:
    if 0 < len(token.get_secret_value()) < SHORTEST_TOKEN:
        raise ValueError(f"has fewer than {SHORTEST_TOKEN} characters: such a token can be guessed")
    return token


ServerToken = Annotated[BearerToken, AfterValidator(_long_enough)]


class Dashboard(Section):
    host: Annotated[str, Field(min_length=1)]
    port: Annotated[int, Field(ge=0, le=65_535)]
    token: ServerToken
    allowed_hosts: tuple[str, ...]
    tls_certificate: str
    tls_key: str
    poll_interval_ms: SomeSpan
    cache_bytes: Bytes
    query_memory_bytes: Annotated[Bytes, Field(ge=16 << 20)]
    query_timeout_ms: SomeSpan
    max_rows: SomeCount
    requests_per_second: SomeCount
    max_streams: SomeCount

    @field_validator("allowed_hosts", mode="before")
    @classmethod
    def _hosts(cls, hosts: object) -> object:
        """Accept one text with commas, because an environment variable cannot hold a list."""
        return hosts.replace(",", " ").split() if isinstance(hosts, str) else hosts


class Annotations(Section):
    lead_ms: Span
    open_ms: SomeSpan
    token: ServerToken


class Settings(Clusters):
    """All settings; created by ``load``."""

    job: JobSettings
    time: Time
    session_timeouts: SessionTimeouts
    unread_after: UnreadAfter
    limits: Limits
    state: State
    strategies: Strategies
    findings: Findings
    events: EventsFolder
    kafka_events: KafkaEvents
    kubernetes: Kubernetes
    event_log: EventLogLimits
    tables: Tables
    retention: Retention
    check: Check
    widespread: Widespread
    storage: Storage
    spark: Spark
    dashboard: Dashboard
    annotations: Annotations
    metrics: Metrics
    alerts: Alerts
    log: Log

    def places(self) -> dict[str, Location]:
        """Return the locations that the job reads and writes, by option name; empty ones are left out."""
        return {"--tables": self.job.tables, "--checkpoint": self.job.checkpoint, "--events": self.events.folder}

    def core_config(self) -> CoreConfig:
        """Return the settings that the core's decisions depend on."""
        return core_config_of(self.model_dump())


def load(
    config: Path | None = None, overrides: Mapping[str, object] | None = None, env: Mapping[str, str] | None = None
) -> Settings:
    """Merge the sources of settings: defaults, file, environment, command line.

    Args:
        config: A user's TOML file.
        overrides: ``section.key`` -> value, from the command line; None values are left out.
        env: Environment variables; those of other programs are ignored.

    Raises:
        SettingsError: Lists every mistake: unreadable files, unknown keys, ill-typed or invalid values.
    """
    mistakes: list[str] = []
    layers = [("conf/default.toml", read_file(conf_file("default.toml"), mistakes))]
    if config is not None:
        layers.append((str(config), read_file(config, mistakes)))
    layers.append(("the environment", read_environment(env or {}, mistakes)))
    layers.append(("the command line", read_dotted(overrides or {})))
    merged: Layer = {}
    origins: Origins = {}
    for origin, layer in layers:
        merge_layer(merged, layer, origin, origins)
    try:
        settings = Settings(**merged)
    except pydantic.ValidationError as error:
        raise SettingsError([*mistakes, *(_sentence(problem, origins) for problem in error.errors())]) from error
    if mistakes:
        raise SettingsError(mistakes)
    return settings


def duration_ms(text: str) -> int:
    """Parse a span of time in users' notation: ``250ms``, ``2s``, ``10m``, ``1h``, ``2d``; a bare number is seconds.

    Raises:
        ValueError: It is not a span, or is longer than a hundred years.

    Example:
        >>> duration_ms("1.5s"), duration_ms("10m"), duration_ms("3")
        (1500, 600000, 3000)
    """
    match = re.fullmatch(r"\s*([0-9]{1,300}(?:\.[0-9]+)?)\s*(ms|s|m|h|d|)\s*", text)
    if match is None:
        raise ValueError(f"{text!r} is not a duration; write 250ms, 2s, 10m, 1h or 2d")
    unit_ms = {"ms": 1, "s": 1_000, "": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}[match[2]]
    span_ms = round(float(match[1]) * unit_ms)
    if span_ms > CENTURY_MS:
        raise ValueError(f"{text!r} is longer than a hundred years")
    return span_ms


def _sentence(problem: Mapping[str, Any], origins: Mapping[tuple[str, ...], str]) -> str:
    path = tuple(str(part) for part in problem["loc"] if part != "[key]")
    origin = next((origins[path[:end]] for end in range(len(path), 0, -1) if path[:end] in origins), "settings")
    name = ".".join(path)
    if problem["type"] == "extra_forbidden":
        return f"{origin}: {name}: there is no such setting"
    return f"{origin}: {name}: {problem_text(problem, is_secret=bool(SECRET_OPTIONS.search(name)))}"
