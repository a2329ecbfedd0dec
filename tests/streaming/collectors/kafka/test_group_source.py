"""The source of groups that is chosen, and the reason."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from structlog.testing import capture_logs

from streaming.collectors.kafka import group_source
from streaming.collectors.kafka.group_source import GroupSource, Source, choose_source
from streaming.collectors.kafka.options import KafkaOptions
from streaming.collectors.kafka.permissions import Missing
from streaming.setup.errors import SetupError

OPTIONS = KafkaOptions("h:1", "c")
READ = Missing("Read", "topic", "__consumer_offsets", "it holds the groups' records")
EARLIER = "an earlier start took it; "
TOPICS = Missing("Describe", "topic", "*", "racks stay unknown", needed=False)


@pytest.fixture(autouse=True)
def cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    lacks(monkeypatch, [])
    monkeypatch.setattr(group_source, "offsets_partitions", lambda _: 50)
    monkeypatch.setattr(group_source, "check_admin_rights", lambda _: [])


def lacks(monkeypatch: pytest.MonkeyPatch, missing: Sequence[Missing]) -> None:
    monkeypatch.setattr(group_source, "check_rights", lambda _: list(missing))


def chosen(wanted: str, before: Source | None = None) -> tuple[GroupSource, str]:
    with capture_logs() as logged:
        found = choose_source(OPTIONS, wanted, before)
    (line,) = [record for record in logged if record["event"] == "source of Kafka's groups"]
    assert (line["cluster"], line["source"]) == ("c", found.source)
    return found, line["why"]


def test_with_all_rights_auto_reads_the_records() -> None:
    why = "all rights for it are there"
    assert chosen("auto") == (GroupSource("records", 50, why), why)


def test_without_the_right_to_read_auto_takes_admin_calls_and_names_the_right(monkeypatch: pytest.MonkeyPatch) -> None:
    lacks(monkeypatch, [READ, TOPICS])
    found, why = chosen("auto")
    assert found == GroupSource("admin", why=why)
    assert why == f"missing: {READ}"
    assert str(found) == f"admin: {why}"


def test_auto_uses_admin_calls_if_the_topic_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def hidden(_: KafkaOptions) -> int:
        raise SetupError("no such topic", "none")

    monkeypatch.setattr(group_source, "offsets_partitions", hidden)
    assert chosen("auto")[0].source == "admin"
    with pytest.raises(SetupError, match="no such topic"):
        choose_source(OPTIONS, "records", None)


def test_records_without_the_right_to_read_is_refused_with_the_other_way(monkeypatch: pytest.MonkeyPatch) -> None:
    lacks(monkeypatch, [READ])
    with pytest.raises(SetupError) as refused:
        choose_source(OPTIONS, "records", None)
    assert "--kafka-source admin" in refused.value.remedy


def test_auto_stays_with_what_an_earlier_start_took(monkeypatch: pytest.MonkeyPatch) -> None:
    found, why = chosen("auto", "admin")
    assert found == GroupSource("admin", why=why)
    assert why == f"{EARLIER}the rights for records are there now, which a new start without its memory would take"
    lacks(monkeypatch, [READ])
    with pytest.raises(SetupError, match="__consumer_offsets"):
        choose_source(OPTIONS, "auto", "records")


def test_each_start_finds_the_reason_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen("auto", "records")[1] == f"{EARLIER}all rights for it are there"
    lacks(monkeypatch, [READ, TOPICS])
    first, again = chosen("auto")[1], chosen("auto", "admin")[1]
    assert again == f"{EARLIER}{first}"
    assert str(READ) in again


def test_after_a_restart_the_topic_may_still_be_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def hidden(_: KafkaOptions) -> int:
        raise SetupError("no such topic", "none")

    monkeypatch.setattr(group_source, "offsets_partitions", hidden)
    found, why = chosen("auto", "admin")
    assert (found.source, why) == ("admin", f"{EARLIER}no such topic")
    with pytest.raises(SetupError, match="no such topic"):
        choose_source(OPTIONS, "auto", "records")


@pytest.mark.parametrize("before", [None, "records", "admin"])
def test_the_source_named_in_the_settings_is_used_for_that_reason(before: Source | None) -> None:
    assert [chosen(source, before)[1] for source in ("records", "admin")] == ["the settings say so"] * 2


def test_a_right_that_is_missing_and_not_needed_is_logged_with_the_command_that_gives_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lacks(monkeypatch, [TOPICS])
    with capture_logs() as logged:
        choose_source(OPTIONS, "records", None)
    assert logged[0]["give_it_with"].startswith("kafka-acls.sh --bootstrap-server h:1")
