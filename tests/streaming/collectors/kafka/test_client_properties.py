"""Unknown client properties are refused, and the error suggests the ones that were meant."""

from __future__ import annotations

import pytest

from streaming.collectors.kafka.client_properties import unknown_properties


@pytest.mark.parametrize(
    "name",
    [
        "security.protocol",
        "kafka.security.protocol",
        "sasl.jaas.config",
        "ssl.truststore.location",
        "max.poll.records",  # only Java's client has it
        "socket.keepalive.enable",  # only librdkafka has it
        "statistics.interval.ms",  # only librdkafka has it, as its own check says
        "sasl.mechanisms",
        "ssl.ca.location",
        "minPartitions",  # Spark's
        "fetchOffset.retryIntervalMs",
    ],
)
def test_properties_of_java_librdkafka_and_spark_are_accepted(name: str) -> None:
    assert unknown_properties({name: "x"}, "kafka.options") == []


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("security.protcol", "; did you mean security.protocol"),
        ("ssl.truststore.pasword", "; did you mean ssl.truststore.password"),
        ("SASL.mechanism", "; did you mean sasl.mechanism?"),
        ("sasl.user", "; did you mean sasl."),
        ("xyzzy", ""),
        ("", ""),
        ("rebalance.monitor.none", ""),
    ],
)
def test_unknown_names_are_refused_with_a_suggestion(name: str, meant: str) -> None:
    (sentence,) = unknown_properties({name: "secret"}, "kafka.options")
    assert sentence.startswith(f"kafka.options: there is no client property {name}{meant}")
    assert "secret" not in sentence


def test_a_class_of_the_users_own_may_have_properties_of_its_own_but_no_typing_errors() -> None:
    given = {"sasl.client.callback.handler.class": "com.example.Handler", "vault.address": "x", "security.protcol": "y"}
    (sentence,) = unknown_properties(given, "kafka.options")
    assert "security.protcol" in sentence
