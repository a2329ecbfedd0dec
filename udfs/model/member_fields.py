"""Core: the fields that describe a member, as tables of ``MemberFields``, their only definition. No I/O.

The contract of events and its JSON Schema, the state and its encoding, the journal, exports and the columns of
``members`` derive from it. Add a new field that rows show at the end of ``ShownFields``, any other at the end of
``MemberFields``; then raise ``GROUP_VERSION``, because older releases cannot read it, and give that version as the
field's ``since``.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, get_args, get_origin, get_type_hints

import msgspec

# Kafka's group ids are strings of at most 32,767 bytes; no other names are longer.
MAX_NAME_LENGTH = 32_767
MAX_INT32 = 2**31 - 1
MAX_INT64 = 2**63 - 1
# Spans are added to times; the sum must fit 64 bits, and a double too.
MAX_SPAN_MS = 2**53 - 1

Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME_LENGTH)]
QueueId: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MAX_INT32)]
SpanMs: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MAX_SPAN_MS)]
OwnedGeneration: TypeAlias = Annotated[int, msgspec.Meta(ge=-1, le=MAX_INT64)]  # -1 is Kafka's value for none yet


class QueueRef(msgspec.Struct, frozen=True, order=True, omit_defaults=True, gc=False):
    """One queue of one topic, as an assignment or a commit names it."""

    topic: Name
    queue_id: QueueId
    broker: str | None = None


class Trait(NamedTuple):
    """Properties of a field beyond its type.

    Attributes:
        comment: The comment of its column, if rows show it.
        updated_by: With reported generations, the event that brings a value valid from then on. ``member``: also the
            member's own; ``snapshot``: only a snapshot; ``generation``: only the snapshot of the next generation, the
            only one to show it.
        since: The first ``GROUP_VERSION`` whose bytes have it; 1: in the original layout, whose order the format
            modules fix.
    """

    comment: str = ""
    updated_by: Literal["member", "snapshot", "generation"] = "member"
    since: int = 1


class ShownFields(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The fields of a description that rows of ``members`` show."""

    client_id: Annotated[str | None, Trait("Client id")] = None
    host: Annotated[str | None, Trait("Address of the client")] = None
    instance_id: Annotated[str | None, Trait("Static member's group.instance.id", "snapshot")] = None
    rack: Annotated[str | None, Trait("Rack of the client", "snapshot")] = None
    subscriptions: Annotated[tuple[Name, ...] | None, Trait("Topics subscribed to", "generation")] = None
    strategies: Annotated[tuple[Name, ...] | None, Trait("Strategies in order of preference", "snapshot")] = None
    session_timeout_ms: Annotated[SpanMs | None, Trait("Time without a heartbeat after which the session expires")] = (
        None
    )
    # In the source's own form: V5_5_0.
    client_version: Annotated[str | None, Trait("Version of the client, as reported by the source")] = None
    language: Annotated[str | None, Trait("Language of the client: JAVA, GO, ...")] = None
    protocol: Annotated[
        str | None,
        Trait("Protocol that it speaks in a group of Kafka's newer protocols: classic, consumer, ...", "snapshot"),
    ] = None
    process_id: Annotated[str | None, Trait("Process of a member of a streams group", "snapshot")] = None
    # java-4.1, librdkafka, ...
    client_library: Annotated[str | None, Trait("Kafka client library, as its records show it", "snapshot")] = None
    strategy_settings: Annotated[dict[str, object] | None, Trait("Settings of its strategy, as JSON", "snapshot")] = (
        None
    )


class MemberFields(ShownFields, kw_only=True, omit_defaults=True):
    """The description of a member in a join, a heartbeat or a snapshot."""

    # Consumes in order: takes a queue over only with the broker's lock.
    ordered: Annotated[bool | None, Trait(updated_by="snapshot")] = None
    rebalance_timeout_ms: Annotated[SpanMs | None, Trait()] = None
    owned: Annotated[tuple[QueueRef, ...] | None, Trait(updated_by="generation")] = None
    # The generation in which ``owned`` was owned.
    owned_generation: Annotated[OwnedGeneration | None, Trait(updated_by="generation")] = None


_HINTS = get_type_hints(MemberFields, include_extras=True)
# Fields by name; those that rows show come first.
TRAITS: dict[str, Trait] = {
    name: next(part for part in get_args(hint) if isinstance(part, Trait)) for name, hint in _HINTS.items()
}
FIELDS: tuple[str, ...] = tuple(TRAITS)
SHOWN: tuple[str, ...] = ShownFields.__struct_fields__
# The fields added later, in serialization order.
ADDED: tuple[str, ...] = tuple(
    sorted((name for name in FIELDS if TRAITS[name].since > 1), key=lambda name: TRAITS[name].since)
)


def type_of(name: str) -> Any:
    """Return the type of a field, including None."""
    return get_args(_HINTS[name])[0]


def kind_of(name: str) -> type:
    """Return the kind of a field's values: ``str``, ``int``, ``bool``, ``tuple`` or ``dict``.

    Example:
        >>> kind_of("client_id"), kind_of("session_timeout_ms"), kind_of("subscriptions")
        (<class 'str'>, <class 'int'>, <class 'tuple'>)
    """
    plain = next(part for part in get_args(type_of(name)) if part is not type(None))
    if get_origin(plain) is Annotated:
        plain = get_args(plain)[0]
    found: type = get_origin(plain) or plain
    return found
