"""Rights of users on a broker that asks for them (`kafka_41(folder, users=…)`)."""

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tests.kit.brokers import Broker

_TIMEOUT_S = 120
CLUSTER = "kafka-cluster"


def allow(broker: Broker, user: str, operation: str, kind: str, name: str) -> None:
    """Give a right, e.g. `allow(broker, "monitor", "READ", "TOPIC", "__consumer_offsets")`.

    Args:
        broker: one that was started with users.
        user: a name of `broker.users`.
        operation: of `confluent_kafka.admin.AclOperation`: READ, DESCRIBE, DESCRIBE_CONFIGS, …
        kind: of `confluent_kafka.admin.ResourceType`: TOPIC, GROUP, BROKER (the cluster).
        name: the exact name, `*` for all, or `CLUSTER` with kind BROKER.
    """
    client = AdminClient(broker.client_settings())
    right = AclBinding(*_where(kind, name), f"User:{user}", "*", AclOperation[operation], AclPermissionType.ALLOW)
    for answer in client.create_acls([right]).values():
        answer.result(_TIMEOUT_S)


def forbid_everything(broker: Broker, user: str) -> None:
    """Take all rights from a user."""
    client = AdminClient(broker.client_settings())
    rights = AclBindingFilter(
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        f"User:{user}",
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    for answer in client.delete_acls([rights]).values():
        answer.result(_TIMEOUT_S)


def _where(kind: str, name: str) -> tuple[ResourceType, str, ResourcePatternType]:
    return ResourceType[kind], name, ResourcePatternType.LITERAL
