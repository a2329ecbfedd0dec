"""Shell: checks, before Spark starts, that a cluster can be reached and grants the needed permissions.

Kafka's ACLs themselves are not read, because few users may do so; each permission is tried.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

from confluent_kafka import KafkaError, KafkaException

from streaming.collectors.kafka.metadata_client import GROUP_PREFIX, REFUSALS, MetadataClient
from streaming.collectors.kafka.options import KafkaOptions
from streaming.machine.port_check import require_reachable
from streaming.setup.errors import SetupError, UnreachableError
from udfs.kafka.consumer_offsets import OFFSETS_TOPIC

_TIMEOUT_S = 10.0
_TOPIC_APPEARS_S = 30.0
_CHECK_EVERY_S = 0.2
# For a missing topic, users that may describe all topics get this error; others get an authorization error.
_NOBODYS_TOPIC = "rebalance-monitor.rights-check"
_NOT_REACHED = (
    "check the address HOST:PORT, that a broker listens there, and whether it requires TLS or SASL\n"
    "(security.protocol and its options, under [kafka.options] or with --kafka-option)"
)
_NOT_YET = frozenset(
    {
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)


@dataclass(frozen=True)
class Missing:
    """A permission that the monitor lacks.

    Attributes:
        operation: Kafka's name in ACLs. resource: ``topic`` or ``group``. name: The resource's name.
        prefixed: The name is a prefix.
        needed: Whether it is required; otherwise ``why`` names what is unknown without it.
    """

    operation: Literal["Describe", "Read"]
    resource: Literal["topic", "group"]
    name: str
    why: str
    prefixed: bool = False
    needed: bool = True

    def command(self, options: KafkaOptions) -> str:
        """Return the command line that grants this permission."""
        pattern = " --resource-pattern-type prefixed" if self.prefixed else ""
        return (
            f"kafka-acls.sh --bootstrap-server {options.bootstrap_servers} --add --allow-principal"
            f" User:{options.user or 'NAME'} --operation {self.operation} --{self.resource} '{self.name}'{pattern}"
        )

    def __str__(self) -> str:
        every = "that begin with " if self.prefixed else ""
        what = (
            f"{self.resource}s {every}{self.name}"
            if self.prefixed or self.name == "*"
            else f"{self.resource} {self.name}"
        )
        return f"{self.operation} on {what} ({self.why})"


_READ_OFFSETS = Missing("Read", "topic", OFFSETS_TOPIC, "it holds the groups' records")
_USE_GROUP = Missing("Describe", "group", GROUP_PREFIX, "Spark's reader queries its own, empty groups", prefixed=True)
_SEE_GROUPS = Missing(
    "Describe", "group", "*", "without it only groups with permissions of their own are listed", needed=False
)
_SEE_TOPICS = Missing(
    "Describe", "topic", "*", "without it a topic's queues are unknown, and its groups are not recomputed", needed=False
)


def check_rights(options: KafkaOptions) -> list[Missing]:
    """Try every permission; return the missing ones.

    Raises:
        SetupError: The cluster cannot be reached, or refuses this user.
    """
    with _connected(options) as view:
        return _check(view, options)


def require_topic(options: KafkaOptions, topic: str) -> None:
    """Check that a topic exists and may be described.

    Raises:
        SetupError: The topic does not exist, or the cluster cannot be reached or refuses this user.
    """
    with _connected(options) as view:
        try:
            error = view.topic_error(topic)
        except KafkaException as failure:
            raise _unusable(options, failure.args[0], view.complaints()) from failure
    if error is not None and error.code() not in _NOT_YET - {KafkaError.UNKNOWN_TOPIC_OR_PART}:
        raise SetupError(
            f"the topic {topic} on {options.bootstrap_servers} cannot be read: {error.str()}",
            "check its name and the right to describe and read it; or create it first, or start its producer",
        )


def offsets_partitions(options: KafkaOptions) -> int:
    """Return the number of partitions of ``__consumer_offsets``; if there was never a group, let the broker create it.

    Raises:
        SetupError: The cluster cannot be reached, refuses this user, or has no such topic.
    """
    with _connected(options) as view:
        deadline = time.monotonic() + _TOPIC_APPEARS_S
        while time.monotonic() < deadline:
            try:
                partitions = view.offsets_partitions()
                if partitions:
                    return partitions
                view.locate_coordinator()
            except KafkaException as error:
                # While the topic is being created, it has no leaders yet.
                if error.args[0].code() not in _NOT_YET:
                    raise _unusable(options, error.args[0], view.complaints()) from error
            time.sleep(_CHECK_EVERY_S)
    raise SetupError(
        f"{options.bootstrap_servers} has no topic {OFFSETS_TOPIC} with leaders, and does not create it on request",
        "check that enough brokers run for its replicas; or start one consumer with a group, and then the monitor",
    )


def check_admin_rights(options: KafkaOptions) -> list[Missing]:
    """Try the permissions needed to follow a cluster by admin calls; return the missing ones.

    Raises:
        SetupError: The cluster cannot be reached, or refuses this user.
    """
    with _connected(options) as view:
        try:
            missing = [] if view.may_describe_groups() else [_SEE_GROUPS]
            if _denies(view.topic_error(_NOBODYS_TOPIC)):
                missing.append(_SEE_TOPICS)
        except KafkaException as error:
            raise _unusable(options, error.args[0], view.complaints()) from error
    return missing


def refuse_without(missing: list[Missing], options: KafkaOptions) -> None:
    """Raise an error that names each permission that is missing and needed.

    Raises:
        SetupError: A needed permission is missing.
    """
    if any(right.needed for right in missing):
        raise SetupError(
            f"{options.user or 'the user'} lacks permissions that the monitor needs on {options.bootstrap_servers}:\n"
            + "\n".join(f"  {right}" for right in missing),
            "grant them, for example with:\n"
            + "\n".join(right.command(options) for right in missing)
            + "\nor follow the groups by admin calls, which are less exact: --kafka-source admin",
        )


def _connected(options: KafkaOptions) -> MetadataClient:
    """Return a client of the cluster, if its port is open; the client itself would wait long for a broker."""
    servers = [server.strip().rpartition("/")[2] for server in options.bootstrap_servers.split(",")]
    require_reachable(servers, what="Kafka broker", remedy=_NOT_REACHED)
    try:
        return MetadataClient(options, timeout_s=_TIMEOUT_S)
    except KafkaException as error:
        raise SetupError(
            f"the client properties cannot be used: {error.args[0].str()}",
            "fix them under [kafka.options], or with --kafka-option",
        ) from error


def _check(view: MetadataClient, options: KafkaOptions) -> list[Missing]:
    missing = []
    try:
        topic_error = view.topic_error(OFFSETS_TOPIC)
    except KafkaException as error:
        raise _unusable(options, error.args[0], view.complaints()) from error
    group_error = view.may_use_group()
    if group_error is not None and group_error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:
        # A coordinator that is not available yet is not a missing permission; the reader waits for it.
        group_error = None
    if _denies(topic_error) or (topic_error is None and _denies(view.may_read())):
        missing.append(_READ_OFFSETS)
    if group_error is not None:
        missing.append(_USE_GROUP)
    if _denies(view.topic_error(_NOBODYS_TOPIC)):
        missing.append(_SEE_TOPICS)
    return missing


def _denies(error: KafkaError | None) -> bool:
    return error is not None and error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def _unusable(options: KafkaOptions, error: KafkaError, complaints: list[KafkaError]) -> SetupError:
    servers = options.bootstrap_servers
    refusal = next((complaint for complaint in [error, *complaints] if complaint.code() in REFUSALS), None)
    if refusal is None:
        # The error of the first broker has more detail than "all brokers are down".
        plain = [complaint for complaint in [*complaints, error] if complaint.code() != KafkaError._ALL_BROKERS_DOWN]
        reason = (plain or [error])[0].str()
        return UnreachableError(f"the Kafka cluster {servers} cannot be reached: {reason}", _NOT_REACHED)
    if refusal.code() == KafkaError._SSL:
        return SetupError(
            f"no TLS connection to {servers}: {refusal.str()}",
            "check security.protocol, ssl.truststore.location or ssl.ca.location,\n"
            "and the name in the broker's certificate",
        )
    return SetupError(
        f"the Kafka cluster {servers} rejects {options.user or 'this client'}: {refusal.str()}",
        "check sasl.mechanism, and name and password in sasl.jaas.config (or sasl.username, sasl.password)",
    )
