"""How policies are set: the table conf/policies.toml, and what it answers."""

from __future__ import annotations

import pytest

from streaming.history.policy_settings import entries, setting_of
from streaming.history.policy_texts import KINDS
from udfs.model.systems import SYSTEMS
from udfs.strategies.kafka.client_library import library_of
from udfs.strategies.registry import built_in


def test_each_entry_is_about_something_that_exists_and_names_its_source() -> None:
    strategies = {name.rpartition(".")[2] for system in SYSTEMS for name in built_in(system)}
    for entry in entries():
        assert entry.policy in {kind.name for kind in KINDS}
        assert entry.system in SYSTEMS
        assert entry.library is None or library_of(entry.library).name == entry.library
        assert bool(entry.keys) != bool(entry.cannot), entry
        assert set(entry.of) <= strategies | {"eager", "cooperative", "consumer"}
        # A document and its version.
        assert any(character.isdigit() for character in entry.source), entry


@pytest.mark.parametrize("system", SYSTEMS)
def test_each_policy_on_members_or_topics_is_set_or_refused_in_each_system(system: str) -> None:
    library = "java" if system == "kafka" else None
    for policy in ("static", "session_timeout", "graceful", "queues", "join_delay"):
        assert setting_of(policy, system, library) is not None, policy


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (("session_timeout", "kafka", "java", "4.1"), "session.timeout.ms"),
        (("session_timeout", "kafka", "kafka-python", None), "session_timeout_ms"),
        (("session_timeout", "rocketmq", None, "4.9.7"), "which is fixed"),
        (("session_timeout", "rocketmq", None, "5.1.0"), "channelExpiredTimeout"),
        (("static", "kafka", "java", "2.2"), "since 2.3"),
        (("static", "kafka", "java", "2.10"), "group.instance.id"),
        (("static", "kafka", "librdkafka", None), "group.instance.id"),
        (("static", "rocketmq", None, None), "no static members"),
        (("strategy", "kafka", "librdkafka", None, "sticky"), "cooperative-sticky"),
        (("strategy", "kafka", "java", "2.3", "cooperative-sticky"), "since 2.4"),
        (("strategy", "rocketmq", None, None, "AVG"), "allocateMessageQueueStrategy"),
        (("protocol", "kafka", "java", "3.9", "consumer"), "since 4.0"),
        (("protocol", "kafka", "java", "4.1", "consumer"), "group.protocol=consumer"),
        (("protocol", "kafka", "aiokafka", None, "consumer"), "classic protocol alone"),
        # Nothing that was read says how.
        (("protocol", "kafka", "sarama", None, "consumer"), None),
        (("strategy", "kafka", "java", None, "acme.tiers"), None),
    ],
)
def test_what_sets_a_policy(asked: tuple[str | None, ...], answer: str | None) -> None:
    found = setting_of(*asked)  # type: ignore[arg-type]
    assert (found is None) == (answer is None)
    if found is not None and answer is not None:
        assert answer in f"{', '.join(found.keys)} {found.cannot or ''}"
