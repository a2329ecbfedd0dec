"""Why bytes are no event: a reason, and a sentence that names the place."""

import msgspec
import pytest

from tests.core_config import core_config
from tests.udfs.event_lines import NOW, QUEUE, VALID, line, with_field, without_field
from udfs.ingest.diagnosis import EVENT_TYPES, diagnose
from udfs.ingest.parser import parse
from udfs.model.rejection import Rejection

RULES = core_config()


def reason(raw: bytes) -> tuple[str, str]:
    found = diagnose(raw, msgspec.DecodeError("as the decoder says"))
    return found.reason, found.detail


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b'"clock"', ("not_an_object", "a JSON string, where an object is required")),
        (b"true", ("not_an_object", "a JSON boolean, where an object is required")),
        (b"1.5", ("not_an_object", "a JSON number, where an object is required")),
        (b"null", ("not_an_object", "a JSON null, where an object is required")),
        (b"[1]", ("not_an_object", "a JSON array, where an object is required")),
        (b'{"a":NaN}', ("number_not_finite", "NaN is not a JSON number")),
        (without_field("schema_version"), ("missing_schema_version", "required: 1")),
        (with_field("schema_version", []), ("ill_typed_schema_version", "a JSON array; required: 1")),
        (with_field("schema_version", 2), ("unknown_schema_version", "2; this monitor supports 1")),
        (with_field("type", 7), ("ill_typed_type", "a JSON number, where text is required")),
        (without_field("group"), ("missing_group", "heartbeat needs group")),
        (with_field("group", ""), ("empty_group", "Expected `str` of length >= 1 - at `$.group`")),
        (
            with_field("queues", [QUEUE, {**QUEUE, "queue_id": -1}], "progress"),
            ("negative_queue_id", "Expected `int` >= 0 - at `$.queues[1].queue_id`"),
        ),
        (
            with_field("assignments", {"m": [{"topic": "t"}]}, "group_snapshot"),
            (
                "missing_queue_id",
                "Object missing required field `queue_id` - at `$.assignments[...][0]`",
            ),
        ),
        (
            line(VALID["clock"]).replace(b'"cluster"', b'"cluster": 5, "cluster"'),
            ("duplicate_key", "'cluster' occurs twice; as the decoder says"),
        ),
        # Only the decoder knows what is wrong with it.
        (line(VALID["clock"]), ("invalid_event", "as the decoder says")),
    ],
)
def test_the_sentence_names_what_is_wrong_and_where(raw: bytes, expected: tuple[str, str]) -> None:
    assert reason(raw) == expected


def test_an_unknown_type_lists_those_that_there_are_and_is_itself_cut() -> None:
    code, detail = reason(with_field("type", "x" * 500))
    assert code == "unknown_type"
    assert detail.endswith(f"known: {', '.join(EVENT_TYPES)}")
    assert len(detail) < 320


def test_every_type_of_the_contract_is_read() -> None:
    assert {event["type"] for event in VALID.values()} == set(EVENT_TYPES)


def test_version_is_checked_before_type_and_type_before_fields() -> None:
    spoilt = {**VALID["heartbeat"], "schema_version": 2, "type": "x", "group": ""}
    assert reason(line(spoilt))[0] == "unknown_schema_version"
    assert reason(line({**spoilt, "schema_version": 1}))[0] == "unknown_type"
    assert reason(line({**spoilt, "schema_version": 1, "type": "heartbeat"}))[0] == "empty_group"


@pytest.mark.parametrize(("cluster", "group"), [(5, "g"), ("c", None), ("", "")])
def test_cluster_and_group_are_named_only_where_they_are_names(cluster: object, group: object) -> None:
    found = diagnose(line({"cluster": cluster, "group": group}), ValueError())
    named = (cluster if cluster == "c" else None, group if group == "g" else None)
    assert (found.cluster, found.group_id) == named


def test_a_rejection_names_cluster_and_group_where_they_can_be_read() -> None:
    outcome = parse(without_field("member_id"), NOW, RULES)
    assert isinstance(outcome, Rejection)
    assert (outcome.cluster, outcome.group_id) == ("c1", "g1")


def test_the_reason_does_not_depend_on_the_order_of_the_keys() -> None:
    spoilt = {**VALID["heartbeat"], "host": 5, "group": "", "system": "x"}
    backwards = dict(reversed(spoilt.items()))
    first, second = parse(line(spoilt), NOW, RULES), parse(line(backwards), NOW, RULES)
    assert first == second
