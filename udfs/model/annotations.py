"""Core: annotations: what people and platforms did, such as a deploy, as written by anyone. No I/O.

An annotation decides nothing: it belongs to no cluster's history, moves no clock, and reaches no group.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal, TypeAlias

import msgspec

from udfs.model.events import AnyEvent, Name, Timestamp
from udfs.model.journal import AnnotationWritten, Change

# No cluster has this name. In the journal annotations are under it, because they may concern any cluster.
NO_CLUSTER = ""
MAX_PATTERNS = 100  # of each kind
# What an annotation says about a platform; the fields of the event, the journal and the table have these names.
PLATFORM_FIELDS = ("platform", "pod", "namespace", "workload", "revision", "node", "image")
# An annotation of the first kind says which pod has the addresses in ``hosts``, from ``from`` to ``to``; one of the
# second, that a platform's pods are known from ``from`` to ``to``. A collector writes them for those who read.
POD_KIND, FOLLOWED_KIND = "pod", "pods_followed"

AnnotationId: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
Kind: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=50)]
Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=2_000, pattern=r"\S")]
Url: TypeAlias = Annotated[str, msgspec.Meta(max_length=2_000, pattern=r"^https?://[^\s\x00-\x1f\x7f]+$(?!\n)")]
Glob: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=1_000)]
Globs: TypeAlias = Annotated[tuple[Glob, ...], msgspec.Meta(max_length=MAX_PATTERNS)]


class Annotation(msgspec.Struct, kw_only=True, omit_defaults=True, tag_field="type", tag="annotation"):
    """What was done to a platform, and what it concerns; every field that is given must match.

    Attributes:
        event_time: When this version was written. Of versions with the same id the newest is valid.
        kind: ``deploy``, ``scaling``, ``drain``, ``incident``, or any other word.
        id: Its identity; without one, its content.
        from_: When it began; without it at the earliest ``event_time`` of its versions. to: When it ended; None if
            unknown, or not over.
        groups, client_ids, hosts: Shell globs, of which one must match. A host is a member's host name or address.
        platform, pod, namespace, workload, revision, node, image: The platform and its part that it is about. A
            workload is written as its kind and name, ``deployment orders``.
    """

    schema_version: Literal[1]
    event_time: Timestamp
    kind: Kind
    text: Text
    id: AnnotationId | None = None
    from_: Timestamp | None = msgspec.field(name="from", default=None)
    to: Timestamp | None = None
    url: Url | None = None
    cluster: Name | None = None
    groups: Globs = ()
    client_ids: Globs = ()
    hosts: Globs = ()
    platform: Name | None = None
    pod: Name | None = None
    namespace: Name | None = None
    workload: Name | None = None
    revision: Name | None = None
    node: Name | None = None
    image: Name | None = None
    event_id: Name | None = None  # as in all events; it does not identify the annotation


# Everything that the contract has; an ``AnyEvent`` belongs to a cluster.
ContractEvent: TypeAlias = AnyEvent | Annotation


def annotation_change(event: Annotation) -> Change:
    """Return the change of an annotation; the same content gives the same change."""
    # Without an id, the same text at another time is another annotation.
    began_at = event.event_time if event.from_ is None else event.from_
    content = [event.kind, event.text, event.url, began_at, event.to, event.cluster]
    concerned: list[object] = [event.groups, event.client_ids, event.hosts]
    about = {name: getattr(event, name) for name in PLATFORM_FIELDS}
    # Annotations without these fields keep the identity that they have always had.
    concerned += [about] if any(about.values()) else []
    annotation_id = event.id
    if annotation_id is None:
        annotation_id = hashlib.blake2b(msgspec.json.encode([*content, *concerned]), digest_size=16).hexdigest()
    body = AnnotationWritten(
        annotation_id=annotation_id,
        annotation=event.kind,
        text=event.text,
        url=event.url,
        cluster=event.cluster,
        groups=event.groups,
        client_ids=event.client_ids,
        hosts=event.hosts,
        began_at=event.from_,
        ended_at=event.to,
        written_at=event.event_time,
        **about,
    )
    return Change(
        cluster=NO_CLUSTER,
        group_id=None,
        subject=annotation_id,
        number=event.event_time,
        event_time=event.event_time,
        body=body,
    )
