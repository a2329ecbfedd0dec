"""Shell: the section of each live cluster's settings; a system is added in ``udfs/model/systems.py`` first."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, SecretStr, field_validator

from streaming.settings.sections import Address, ClientOptions, KafkaAddress, Section, SomeCount, SomeSpan, Span

_PATTERNS = ("include_groups", "exclude_groups", "include_topics", "exclude_topics")


class LiveCluster(Section):
    """A live cluster to follow; it is followed when it has an address."""

    address: ClassVar[str]  # the name of the field with the address

    cluster: str
    include_groups: tuple[str, ...]
    exclude_groups: tuple[str, ...]
    poll_interval_ms: Annotated[Span, Field(ge=100)]

    def mistakes(self) -> list[str]:
        """Return mistakes in settings that are valid individually."""
        return []

    @field_validator(*_PATTERNS, mode="before", check_fields=False)
    @classmethod
    def _list(cls, patterns: object) -> object:
        """Accept a single value as a list, because an environment variable cannot hold more."""
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


class Kafka(LiveCluster, ClientOptions):
    address = "bootstrap_servers"

    bootstrap_servers: KafkaAddress
    source: Literal["records", "admin", "auto"]
    ends_interval_ms: Span
    unread_groups: int = Field(ge=0, le=10_000)
    logs: tuple[str, ...]
    log_timezone: str

    @field_validator("logs", mode="before")
    @classmethod
    def _logs(cls, paths: object) -> object:
        """Accept a single value as a list, because an environment variable cannot hold more."""
        return [paths] if isinstance(paths, str) else paths

    @field_validator("log_timezone")
    @classmethod
    def _zone(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (ValueError, OSError, ZoneInfoNotFoundError) as error:
            raise ValueError(f"{name!r} is not a time zone like Europe/Berlin") from error
        return name


class _Encrypted(Section):
    tls: bool
    tls_ca: str
    tls_verify: bool
    tls_certificate: str
    tls_key: str


class RocketMq(LiveCluster, _Encrypted):
    address = "name_servers"

    name_servers: Address
    proxies: tuple[Address, ...]
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

    @field_validator("proxies", mode="before")
    @classmethod
    def _proxies(cls, proxies: object) -> object:
        """Accept the form of name servers as a list, because an environment variable cannot hold more."""
        if not isinstance(proxies, str):
            return proxies
        return [address.strip() for address in re.split(r"[;,]", proxies) if address.strip()]

    @field_validator("proxies")
    @classmethod
    def _named(cls, proxies: tuple[str, ...]) -> tuple[str, ...]:
        if not all(proxies):
            raise ValueError("'' is not HOST:PORT")
        return proxies

    def mistakes(self) -> list[str]:
        """Return mistakes in settings that are valid individually."""
        if bool(self.access_key) == bool(self.secret_key.get_secret_value()):
            return []
        return ["rocketmq.access_key and rocketmq.secret_key go together"]


class Metaq(LiveCluster, _Encrypted):
    address = "zookeeper"

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


class Kubernetes(Section):
    """A Kubernetes cluster whose pods are followed; it is no cluster with groups."""

    cluster: Annotated[str, Field(min_length=1)]
    members_of: str
    kubeconfig: str
    context: str
    namespace: str


class Clusters(Section):
    """The sections of all systems, each named like its system, in the order in which a checkpoint stores them."""

    kafka: Kafka
    rocketmq: RocketMq
    metaq: Metaq

    def cluster(self, system: str) -> LiveCluster:
        """Return a system's section."""
        section: LiveCluster = getattr(self, system)
        return section

    def followed(self) -> dict[str, str]:
        """Return the live clusters to follow: system -> name, always in the same order."""
        sections = {system: self.cluster(system) for system in SECTIONS}
        return {system: section.cluster for system, section in sections.items() if getattr(section, section.address)}


SECTIONS: dict[str, type[LiveCluster]] = {name: field.annotation for name, field in Clusters.model_fields.items()}  # type: ignore[misc]
