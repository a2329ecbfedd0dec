"""Shell: every setting, read once from conf/default.toml, a user's file, the environment and the command line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
)

from streaming.settings.addresses import wrong_hosts
from streaming.settings.conf_files import conf_file
from streaming.settings.errors import SettingsError
from streaming.settings.layers import Layer, Origins, lay_over, read_dotted, read_environment, read_file
from udfs.model.config import CoreConfig

_SECRET_OPTIONS = re.compile(r"password|secret|jaas|\.key$|token", re.IGNORECASE)


# Longer than the range of event times, 2000 to 2100.
_CENTURY_H = 876_600
_CENTURY_MS = _CENTURY_H * 3_600_000
_INT_MAX, _LONG_MAX = 2**31 - 1, 2**63 - 1  # as Java and Arrow count


def _folder(value: object) -> object:
    if value == "" or "\0" in str(value):
        raise ValueError("is not a folder; . is the folder in which the command runs")
    return value


def _address(text: str, *, of_kafka: bool) -> str:
    wrong = wrong_hosts(text, of_kafka=of_kafka)
    if wrong:
        raise ValueError(f"{', '.join(map(repr, wrong))} is not HOST:PORT")
    return text


Span = Annotated[int, Field(ge=0, le=_CENTURY_MS)]
SomeSpan = Annotated[Span, Field(ge=1)]
Count = Annotated[int, Field(ge=0, le=_INT_MAX)]
SomeCount = Annotated[Count, Field(ge=1)]
Bytes = Annotated[int, Field(ge=0, le=_LONG_MAX)]
Folder = Annotated[Path, BeforeValidator(_folder)]
Address = Annotated[str, AfterValidator(partial(_address, of_kafka=False))]
KafkaAddress = Annotated[str, AfterValidator(partial(_address, of_kafka=True))]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_is_a_number(cls, value: object, info: ValidationInfo) -> object:
        if isinstance(value, bool) and cls.model_fields[str(info.field_name)].annotation in (int, float):
            raise ValueError(f"is a number, not {str(value).lower()}")
        return value


class Job(_Section):
    tables: Folder
    checkpoint: Folder
    trigger_interval_ms: Span
    materialize_interval_ms: Span
    stop_timeout_ms: Span
    max_files_per_batch: SomeCount
    max_offsets_per_batch: int = Field(ge=1, le=_LONG_MAX)


class Time(_Section):
    allowed_lateness_ms: Span
    max_clock_skew_ms: Span
    silence: Literal["wait", "expire"]
    source_silent_after_ms: SomeSpan
    settle_ms: Span
    repeat_span_ms: Span
    forget_after_ms: SomeSpan


class SessionTimeouts(_Section):
    kafka_ms: SomeSpan
    rocketmq_ms: SomeSpan
    metaq_ms: SomeSpan


class Limits(_Section):
    max_event_bytes: Annotated[Count, Field(ge=1024)]
    raw_limit_bytes: Count
    max_departed_members: Count
    max_group_work: SomeCount
    max_waiting_events: SomeCount


class State(_Section):
    shards: int = Field(ge=1, le=65_536)
    shuffle_partitions: int = Field(ge=1, le=65_536)


class Strategies(_Section):
    vote_tie_order: Literal["1.0", "4.x"]


class EventsFolder(_Section):
    folder: str


class _ClientOptions(_Section):
    """Options of a Kafka client; likely secrets are kept out of logs."""

    options: dict[str, SecretStr]

    @field_validator("options", mode="before")
    @classmethod
    def _text(cls, options: object) -> object:
        if not isinstance(options, Mapping):
            return options
        return {key: _option_text(value) for key, value in options.items()}

    def plain_options(self) -> dict[str, str]:
        """Return the options with their secrets, for the client alone."""
        return {key: value.get_secret_value() for key, value in self.options.items()}

    def shown_options(self) -> dict[str, str]:
        """Return the options as they may be shown."""
        return {
            key: "**********" if _SECRET_OPTIONS.search(key) else value for key, value in self.plain_options().items()
        }


class KafkaEvents(_ClientOptions):
    topic: str
    bootstrap_servers: KafkaAddress


_PATTERNS = ("include_groups", "exclude_groups", "include_topics", "exclude_topics")


class _LiveCluster(_Section):
    """A live cluster to follow; it is followed when it has an address."""

    cluster: str
    include_groups: tuple[str, ...]
    exclude_groups: tuple[str, ...]
    poll_interval_ms: Annotated[Span, Field(ge=100)]

    @field_validator(*_PATTERNS, mode="before", check_fields=False)
    @classmethod
    def _list(cls, patterns: object) -> object:
        """Accept a single one as a list: a variable cannot hold more."""
        return [patterns] if isinstance(patterns, str) else patterns

    @field_validator(*_PATTERNS, check_fields=False)
    @classmethod
    def _patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error
        return patterns


class Kafka(_LiveCluster, _ClientOptions):
    bootstrap_servers: KafkaAddress


class _Encrypted(_Section):
    tls: bool
    tls_ca: str
    tls_verify: bool
    tls_certificate: str
    tls_key: str


class RocketMq(_LiveCluster, _Encrypted):
    name_servers: Address
    include_topics: tuple[str, ...]
    exclude_topics: tuple[str, ...]
    system_names: bool
    broker_timeout_ms: SomeSpan
    client_timeout_ms: SomeSpan
    running_info_share: float = Field(ge=0, le=1)
    requests_in_flight: SomeCount
    relayed_in_flight: SomeCount
    boot_grace_ms: Span
    route_grace_ms: Span
    forget_broker_ms: Span
    access_key: str
    secret_key: SecretStr
    security_token: SecretStr


class Metaq(_LiveCluster, _Encrypted):
    zookeeper: Address
    include_topics: tuple[str, ...]
    exclude_topics: tuple[str, ...]
    progress_interval_ms: Annotated[Span, Field(ge=100)]
    settle_ms: Span
    session_timeout_ms: SomeSpan
    connect_timeout_ms: SomeSpan
    requests_in_flight: SomeCount
    tls_key_password: SecretStr
    auth: dict[str, SecretStr]
    sasl: dict[str, SecretStr]


class EventLogLimits(_Section):
    memory_bytes: Bytes
    segment_bytes: Annotated[Bytes, Field(ge=1)]
    retention_ms: Span
    unread_retention_ms: Span
    retention_bytes: Bytes
    retention_at_least_ms: Span

    def bounds(self) -> dict[str, Any]:
        """Return the limits as a log of events takes them: what is 0 here, and means no bound, is None."""
        unbounded = ("retention_ms", "unread_retention_ms", "retention_bytes")
        return {name: None if name in unbounded and not value else value for name, value in self}


class Tables(_Section):
    journal_retention_hours: int = Field(ge=1, le=_CENTURY_H)
    vacuum_after_hours: int = Field(ge=0, le=_CENTURY_H)


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
        """Return the live clusters to follow: system -> name, always in the same order."""
        live = {"kafka": self.kafka, "rocketmq": self.rocketmq, "metaq": self.metaq}
        addresses = (self.kafka.bootstrap_servers, self.rocketmq.name_servers, self.metaq.zookeeper)
        return {system: live[system].cluster for system, address in zip(live, addresses, strict=True) if address}

    def rules(self) -> CoreConfig:
        """Return the part of the settings that the core decides by."""
        return CoreConfig(
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
            max_group_work=self.limits.max_group_work,
            max_waiting_events=self.limits.max_waiting_events,
            vote_tie_order=self.strategies.vote_tie_order,
        )


def load(
    config: Path | None = None, overrides: Mapping[str, object] | None = None, env: Mapping[str, str] | None = None
) -> Settings:
    """Merge the sources of settings: defaults, file, environment, command line.

    Args:
        config: A user's TOML file.
        overrides: ``section.key`` -> value, from the command line; None values are left out.
        env: Environment variables; those of others are ignored.

    Raises:
        SettingsError: With every mistake: unreadable files, unknown keys, ill-typed or senseless values.
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
        lay_over(merged, layer, origin, origins)
    try:
        settings = Settings(**merged)
    except pydantic.ValidationError as error:
        raise SettingsError([*mistakes, *(_sentence(problem, origins) for problem in error.errors())]) from error
    if mistakes:
        raise SettingsError(mistakes)
    return settings


def duration_ms(text: str) -> int:
    """Read a span of time as people write it: ``250ms``, ``2s``, ``10m``, ``1h``, ``2d``; a bare number is seconds.

    Raises:
        ValueError: It is none, or longer than a hundred years.

    Example:
        >>> duration_ms("1.5s"), duration_ms("10m"), duration_ms("3")
        (1500, 600000, 3000)
    """
    match = re.fullmatch(r"\s*([0-9]{1,300}(?:\.[0-9]+)?)\s*(ms|s|m|h|d|)\s*", text)
    if match is None:
        raise ValueError(f"{text!r} is not a duration; write 250ms, 2s, 10m, 1h or 2d")
    unit_ms = {"ms": 1, "s": 1_000, "": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}[match[2]]
    span_ms = round(float(match[1]) * unit_ms)
    if span_ms > _CENTURY_MS:
        raise ValueError(f"{text!r} is longer than a hundred years")
    return span_ms


def _option_text(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


def _sentence(problem: Mapping[str, Any], origins: Mapping[tuple[str, ...], str]) -> str:
    path = tuple(str(part) for part in problem["loc"])
    origin = next((origins[path[:end]] for end in range(len(path), 0, -1) if path[:end] in origins), "settings")
    name = ".".join(path)
    if problem["type"] == "extra_forbidden":
        return f"{origin}: {name}: there is no such setting"
    if problem["type"] == "missing":
        return f"{origin}: {name}: is missing"
    if problem["type"] == "value_error":  # Our own message, which names the mistake.
        return f"{origin}: {name}: {problem['msg'].removeprefix('Value error, ')}"
    shown = "" if _SECRET_OPTIONS.search(name) else f", not {problem['input']!r}"
    message = (
        problem["msg"].replace("valid tuple", "valid list").replace("valid dictionary", "section of keys and values")
    )
    return f"{origin}: {name}: {message}{shown}"
