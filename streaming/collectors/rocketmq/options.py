"""Shell: the options of a RocketMQ cluster: address, login, what is followed, and how many requests it gets."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterable
from functools import cached_property
from typing import Final

from streaming.collectors.rocketmq.remoting.client import ClientLimits
from streaming.collectors.rocketmq.remoting.signing import Credentials
from streaming.settings.clusters import RocketMq
from streaming.setup.errors import SetupError

RETRY_PREFIX: Final = "%RETRY%"
DEFAULT_PORT: Final = 9876
# ProxyConfig#remotingListenPort.
PROXY_PORT: Final = 8080
_CACHED_AT_MOST: Final = 100_000  # cached names; beyond it the cache is cleared
# Brokers and tools use these themselves: MixAll, TopicValidator and BrokerController of 4.9.8 and 5.5.0.
SYSTEM_GROUPS: Final = (
    r"CID_RMQ_SYS_.*",
    r"CID_SYS_.*",
    r"CID_ONS-HTTP-PROXY",
    r"CID_ONSAPI_(OWNER|PERMISSION|PULL)",
    r"CID_DefaultHeartBeatSyncerTopic",
    r"DEFAULT_(CONSUMER|PRODUCER)",
    r"FILTERSRV_CONSUMER",
    r"SCHEDULE_CONSUMER",
    r"SELF_TEST_[CP]_GROUP",
    r"TOOLS_CONSUMER",
    r"__MONITOR_CONSUMER",
)
SYSTEM_TOPICS: Final = (
    r"TBW102",
    r"SCHEDULE_TOPIC_XXXX",
    r"BenchmarkTest",
    r"OFFSET_MOVED_EVENT",
    r"RMQ_SYS_.*",
    r"rmq_sys_.*",
    r"SELF_TEST_TOPIC",
    r"TRANS_CHECK_MAX_TIME_TOPIC",
    r"DefaultHeartBeatSyncerTopic",
    r"%SYS%.*",
)


class RocketMqOptions(RocketMq):
    """One cluster's section of the settings.

    A ``%RETRY%`` topic is followed with its group, regardless of the patterns for topics. ``running_info_share`` is
    also the share of the groups whose offsets, and of the topics whose routes, are requested in one round.
    """

    @cached_property
    def _groups(self) -> _Patterns:
        return _Patterns(self.include_groups, (*self.exclude_groups, *(() if self.system_names else SYSTEM_GROUPS)))

    @cached_property
    def _topics(self) -> _Patterns:
        return _Patterns(self.include_topics, (*self.exclude_topics, *(() if self.system_names else SYSTEM_TOPICS)))

    def follows_group(self, group: str) -> bool:
        """Return whether a group is followed."""
        return self._groups.includes(group)

    def follows_topic(self, topic: str) -> bool:
        """Return whether a topic is followed."""
        if topic.startswith(RETRY_PREFIX):
            return self._groups.includes(topic[len(RETRY_PREFIX) :])
        return self._topics.includes(topic)

    def addresses(self) -> tuple[str, ...]:
        """Return the name servers, each with its port, in their order."""
        return tuple(_with_port(address, DEFAULT_PORT) for address in name_servers_of(self.name_servers))

    @cached_property
    def proxy_addresses(self) -> tuple[str, ...]:
        """Return the proxies, each once and with its port, in their order."""
        listed = (_with_port(address, PROXY_PORT) for proxies in self.proxies for address in name_servers_of(proxies))
        return tuple(dict.fromkeys(listed))

    def limits(self) -> ClientLimits:
        """Return the client's limits."""
        return ClientLimits(
            request_timeout_s=self.broker_timeout_ms / 1_000,
            relayed_timeout_s=self.client_timeout_ms / 1_000,
            connect_timeout_s=self.broker_timeout_ms / 1_000,
            requests_in_flight=self.requests_in_flight,
            relayed_in_flight=self.relayed_in_flight,
        )

    def credentials(self) -> Credentials | None:
        """Return the credentials for signing; None if nothing is signed."""
        secret, token = self.secret_key.get_secret_value(), self.security_token.get_secret_value()
        return Credentials(self.access_key, secret, token or None) if self.access_key and secret else None

    def ssl_context(self) -> ssl.SSLContext | None:
        """Return the TLS context; None if connections are plain.

        Raises:
            SetupError: A file cannot be read or is not PEM.
        """
        if not self.tls:
            return None
        try:
            context = ssl.create_default_context(cafile=self.tls_ca or None)
            if self.tls_certificate:
                context.load_cert_chain(self.tls_certificate, self.tls_key or None)
        except (OSError, ssl.SSLError) as error:
            raise SetupError(
                f"the TLS files of {self.cluster} cannot be used: {error}",
                "tls_ca, tls_certificate and tls_key must name PEM files that this user may read",
            ) from error
        if not self.tls_verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


class _Patterns:
    """Included and excluded names; each name is matched once."""

    def __init__(self, include: Iterable[str], exclude: Iterable[str]) -> None:
        self._include = [re.compile(pattern) for pattern in include]
        self._exclude = [re.compile(pattern) for pattern in exclude]
        self._evaluated: dict[str, bool] = {}

    def includes(self, name: str) -> bool:
        found = self._evaluated.get(name)
        if found is None:
            if len(self._evaluated) >= _CACHED_AT_MOST:
                self._evaluated.clear()
            found = any(pattern.fullmatch(name) for pattern in self._include) and not any(
                pattern.fullmatch(name) for pattern in self._exclude
            )
            self._evaluated[name] = found
        return found


def _with_port(address: str, port: int) -> str:
    _, colon, given = address.rpartition(":")
    return address if colon and given.isdigit() else f"{address}:{port}"


def name_servers_of(text: str) -> tuple[str, ...]:
    """Return the addresses in a text separated by ``;`` or ``,``, the format of RocketMQ's own tools."""
    return tuple(address.strip() for address in re.split(r"[;,]", text) if address.strip())
