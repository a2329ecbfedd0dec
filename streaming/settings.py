"""Shell: every setting, read once from conf/default.toml, a user's file, the environment and the command line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pydantic
from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from streaming.conf_folder import conf_file
from streaming.settings_error import SettingsError
from udfs.rules import Rules

ENVIRONMENT_PREFIX = "REBALANCE_MONITOR_"
# Variables of the same prefix that are not settings of the job.
_OTHER_VARIABLES = frozenset({"CACHE"})
_SECRET_OPTIONS = re.compile(r"password|secret|jaas|\.key$|token", re.IGNORECASE)


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Job(_Section):
    tables: Path
    checkpoint: Path
    trigger_interval_ms: int = Field(ge=0)
    materialize_interval_ms: int = Field(ge=0)
    stop_timeout_ms: int = Field(ge=0)
    max_files_per_batch: int = Field(ge=1)
    max_offsets_per_batch: int = Field(ge=1)


class Time(_Section):
    allowed_lateness_ms: int = Field(ge=0)
    max_clock_skew_ms: int = Field(ge=0)
    silence: Literal["wait", "expire"]
    source_silent_after_ms: int = Field(ge=1)
    settle_ms: int = Field(ge=0)
    repeat_span_ms: int = Field(ge=0)
    forget_after_ms: int = Field(ge=1)


class SessionTimeouts(_Section):
    kafka_ms: int = Field(ge=1)
    rocketmq_ms: int = Field(ge=1)
    metaq_ms: int = Field(ge=1)


class Limits(_Section):
    max_event_bytes: int = Field(ge=1024)
    raw_limit_bytes: int = Field(ge=0)
    max_departed_members: int = Field(ge=0)
    max_waiting_events: int = Field(ge=1)


class State(_Section):
    shards: int = Field(ge=1, le=65_536)
    shuffle_partitions: int = Field(ge=1)


class Strategies(_Section):
    vote_tie_order: Literal["1.0", "4.x"]


class EventsFolder(_Section):
    folder: str


class _ClientOptions(_Section):
    """Options of a Kafka client; what looks like a secret is kept from logs."""

    options: dict[str, SecretStr]

    @field_validator("options", mode="before")
    @classmethod
    def _text(cls, options: object) -> object:
        if not isinstance(options, Mapping):
            return options
        return {key: _option_text(value) for key, value in options.items()}

    def plain_options(self) -> dict[str, str]:
        """Answer the options with their secrets, for the client alone."""
        return {key: value.get_secret_value() for key, value in self.options.items()}

    def shown_options(self) -> dict[str, str]:
        """Answer the options as they may be shown."""
        return {
            key: "**********" if _SECRET_OPTIONS.search(key) else value for key, value in self.plain_options().items()
        }


class KafkaEvents(_ClientOptions):
    topic: str
    bootstrap_servers: str


class _LiveCluster(_Section):
    """A live cluster to follow; whether it is, its address says."""

    cluster: str
    include_groups: tuple[str, ...]
    exclude_groups: tuple[str, ...]
    poll_interval_ms: int = Field(ge=100)

    @field_validator("include_groups", "exclude_groups", "include_topics", "exclude_topics", check_fields=False)
    @classmethod
    def _patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
        return patterns


class Kafka(_LiveCluster, _ClientOptions):
    bootstrap_servers: str


class _Encrypted(_Section):
    tls: bool
    tls_ca: str
    tls_verify: bool
    tls_certificate: str
    tls_key: str


class RocketMq(_LiveCluster, _Encrypted):
    name_servers: str
    include_topics: tuple[str, ...]
    exclude_topics: tuple[str, ...]
    system_names: bool
    broker_timeout_ms: int = Field(ge=1)
    client_timeout_ms: int = Field(ge=1)
    running_info_share: float = Field(ge=0, le=1)
    requests_in_flight: int = Field(ge=1)
    relayed_in_flight: int = Field(ge=1)
    boot_grace_ms: int = Field(ge=0)
    route_grace_ms: int = Field(ge=0)
    forget_broker_ms: int = Field(ge=0)
    access_key: str
    secret_key: SecretStr
    security_token: SecretStr


class Metaq(_LiveCluster, _Encrypted):
    zookeeper: str
    include_topics: tuple[str, ...]
    exclude_topics: tuple[str, ...]
    progress_interval_ms: int = Field(ge=100)
    settle_ms: int = Field(ge=0)
    session_timeout_ms: int = Field(ge=1)
    connect_timeout_ms: int = Field(ge=1)
    requests_in_flight: int = Field(ge=1)
    tls_key_password: SecretStr
    auth: dict[str, SecretStr]
    sasl: dict[str, SecretStr]


class EventLogLimits(_Section):
    memory_bytes: int = Field(ge=0)
    segment_bytes: int = Field(ge=1)
    retention_ms: int = Field(ge=0)
    retention_bytes: int = Field(ge=0)
    retention_at_least_ms: int = Field(ge=0)

    def bounds(self) -> dict[str, Any]:
        """Answer the limits as a log of events takes them: what is 0 here, and means no bound, is None."""
        unbounded = ("retention_ms", "retention_bytes")
        return {name: None if name in unbounded and not value else value for name, value in self}


class Tables(_Section):
    journal_retention_hours: int = Field(ge=1)
    vacuum_after_hours: int = Field(ge=0)


class Spark(_Section):
    master: str
    driver_memory: str
    conf: dict[str, str]


class Log(_Section):
    level: Literal["debug", "info", "warning", "error"]
    format: Literal["auto", "text", "json"]


class Settings(_Section):
    """All settings; ``load`` makes them."""

    job: Job
    time: Time
    session_timeouts: SessionTimeouts
    limits: Limits
    state: State
    strategies: Strategies
    events: EventsFolder
    kafka_events: KafkaEvents
    kafka: Kafka
    rocketmq: RocketMq
    metaq: Metaq
    event_log: EventLogLimits
    tables: Tables
    spark: Spark
    log: Log

    def followed(self) -> dict[str, str]:
        """Answer the live clusters to follow: system -> name, always in the same order."""
        live = {"kafka": self.kafka, "rocketmq": self.rocketmq, "metaq": self.metaq}
        addresses = (self.kafka.bootstrap_servers, self.rocketmq.name_servers, self.metaq.zookeeper)
        return {system: live[system].cluster for system, address in zip(live, addresses, strict=True) if address}

    def rules(self) -> Rules:
        """Answer the part of the settings that the core decides by."""
        return Rules(
            shards=self.state.shards,
            allowed_lateness_ms=self.time.allowed_lateness_ms,
            kafka_session_timeout_ms=self.session_timeouts.kafka_ms,
            rocketmq_session_timeout_ms=self.session_timeouts.rocketmq_ms,
            metaq_session_timeout_ms=self.session_timeouts.metaq_ms,
            settle_ms=self.time.settle_ms,
            repeat_span_ms=self.time.repeat_span_ms,
            forget_after_ms=self.time.forget_after_ms,
            silence=self.time.silence,
            source_silent_after_ms=self.time.source_silent_after_ms,
            max_clock_skew_ms=self.time.max_clock_skew_ms,
            max_event_bytes=self.limits.max_event_bytes,
            raw_limit_bytes=self.limits.raw_limit_bytes,
            max_departed_members=self.limits.max_departed_members,
            max_waiting_events=self.limits.max_waiting_events,
            vote_tie_order=self.strategies.vote_tie_order,
        )


def load(
    config: Path | None = None, overrides: Mapping[str, object] | None = None, env: Mapping[str, str] | None = None
) -> Settings:
    """Lay the sources of settings over each other: defaults, file, environment, command line.

    Args:
        config: A user's TOML file.
        overrides: ``section.key`` -> value, from the command line; None values are left out.
        env: Environment variables; those without ``ENVIRONMENT_PREFIX`` are ignored.

    Raises:
        SettingsError: With every mistake: unreadable files, unknown keys, ill-typed or senseless values.
    """
    mistakes: list[str] = []
    layers = [("conf/default.toml", _read(conf_file("default.toml"), mistakes))]
    if config is not None:
        layers.append((str(config), _read(config, mistakes)))
    environment = _environment(env or {}, mistakes)
    if environment:
        layers.append(("the environment", environment))
    given = {key: value for key, value in (overrides or {}).items() if value is not None}
    layers.append(("the command line", _nested(given)))
    if mistakes:
        raise SettingsError(mistakes)
    merged: dict[str, Any] = {}
    origins: dict[tuple[str, ...], str] = {}
    for origin, layer in layers:
        _lay_over(merged, layer, origin, origins, ())
    try:
        return Settings(**merged)
    except pydantic.ValidationError as error:
        raise SettingsError([_sentence(problem, origins) for problem in error.errors()]) from error


def is_setting(variable: str) -> bool:
    """Say whether an environment variable stands for a setting of the job."""
    return variable.startswith(ENVIRONMENT_PREFIX) and variable.removeprefix(ENVIRONMENT_PREFIX) not in _OTHER_VARIABLES


def duration_ms(text: str) -> int:
    """Read a span of time as people write it: ``250ms``, ``2s``, ``10m``, ``1h``, ``2d``; a bare number is seconds.

    Raises:
        ValueError: It is none.

    Example:
        >>> duration_ms("1.5s"), duration_ms("10m"), duration_ms("3")
        (1500, 600000, 3000)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|)\s*", text)
    if match is None:
        raise ValueError(f"{text!r} is no span of time; write 250ms, 2s, 10m, 1h or 2d")
    unit_ms = {"ms": 1, "s": 1_000, "": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}[match[2]]
    return round(float(match[1]) * unit_ms)


def _option_text(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


def _read(path: Path, mistakes: list[str]) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        mistakes.append(f"{path}: cannot be read: {error}")
    except tomllib.TOMLDecodeError as error:
        mistakes.append(f"{path}: is no TOML: {error}")
    return {}


def _environment(env: Mapping[str, str], mistakes: list[str]) -> dict[str, Any]:
    ours = {key: value for key, value in env.items() if is_setting(key)}
    layer: dict[str, Any] = {}
    for key, value in sorted(ours.items()):
        section, _, name = key.removeprefix(ENVIRONMENT_PREFIX).lower().partition("__")
        if not name:
            mistakes.append(f"{key}: is no setting; write {ENVIRONMENT_PREFIX}SECTION__KEY")
            continue
        keys = [section, *name.split("__")]
        place = layer
        for part in keys[:-1]:
            place = place.setdefault(part, {})
        place[keys[-1]] = value
    return layer


def _nested(dotted: Mapping[str, object]) -> dict[str, Any]:
    layer: dict[str, Any] = {}
    for key, value in dotted.items():
        section, _, name = key.partition(".")
        # Client properties have dots of their own: kafka.options.security.protocol.
        options, _, option = name.partition(".")
        if option:
            layer.setdefault(section, {}).setdefault(options, {})[option] = value
        else:
            layer.setdefault(section, {})[name] = value
    return layer


def _lay_over(
    under: dict[str, Any],
    over: Mapping[str, Any],
    origin: str,
    origins: dict[tuple[str, ...], str],
    path: tuple[str, ...],
) -> None:
    for key, value in over.items():
        here = (*path, key)
        if isinstance(value, Mapping):
            below = under.get(key)
            if not isinstance(below, dict):
                below = under[key] = {}
            origins.setdefault(here, origin)
            _lay_over(below, value, origin, origins, here)
        else:
            under[key] = value
            origins[here] = origin


def _sentence(problem: Mapping[str, Any], origins: Mapping[tuple[str, ...], str]) -> str:
    path = tuple(str(part) for part in problem["loc"])
    origin = next((origins[path[:end]] for end in range(len(path), 0, -1) if path[:end] in origins), "settings")
    name = ".".join(path)
    if problem["type"] == "extra_forbidden":
        return f"{origin}: {name}: there is no such setting"
    if problem["type"] == "missing":
        return f"{origin}: {name}: is missing"
    shown = "" if _SECRET_OPTIONS.search(name) else f", not {problem['input']!r}"
    return f"{origin}: {name}: {problem['msg'].removeprefix('Value error, ')}{shown}"
