"""Shell: the table of annotations. No I/O."""

from __future__ import annotations

from streaming.tables.columns import TEXT, TEXTS, TIME, TRUTH, Column, Table

ANNOTATIONS = Table(
    "annotations",
    "One row per annotation: what people and platforms did, such as a deploy, as written by anyone. It decides nothing",
    (
        Column("annotation_id", TEXT, "Identity: its own id, or a hash of its content"),
        Column("kind", TEXT, "deploy, scaling, drain, incident, or any other word"),
        Column("text", TEXT, "What was done"),
        Column("url", TEXT, "Address with more about it"),
        Column("cluster", TEXT, "Name of the cluster that it concerns; null = any"),
        Column("groups", TEXTS, "Shell globs of the groups that it concerns; empty = any"),
        Column("client_ids", TEXTS, "Shell globs of the client ids that it concerns; empty = any"),
        Column("hosts", TEXTS, "Shell globs of the hosts and addresses that it concerns; empty = any"),
        Column("began_at", TIME, "When it began; if no version says so, when the first was written"),
        Column("ended_at", TIME, "When it ended; null = not known, or not over"),
        Column("written_at", TIME, "event_time of this version; a newer version of the same id replaces it"),
        Column("first_written_at", TIME, "event_time of its first version"),
        Column("began_inferred", TRUTH, "Whether this version does not say when it began"),
        Column("platform", TEXT, "Name of the Kubernetes cluster that it is about"),
        Column("pod", TEXT, "Name of the pod that it is about"),
        Column("namespace", TEXT, "Namespace of the pod or workload"),
        Column("workload", TEXT, "Kind and name of the pod's workload, e.g. deployment orders"),
        Column("revision", TEXT, "Revision of the workload, as its platform counts"),
        Column("node", TEXT, "Node of the pod, or the node that it is about"),
        Column("image", TEXT, "Image of the pod's first container, or of the one that it is about"),
    ),
    key=("annotation_id",),
    cluster_by=("began_at",),
    unique_texts=("annotation_id", "text"),
)
