"""Shell: the known client properties; a mistyped one would silently have no effect."""

from __future__ import annotations

from collections.abc import Mapping

from streaming.collectors.kafka.options import is_of_spark
from streaming.settings.suggestions import did_you_mean

# Source: kafka-clients 4.1.1 ``ConsumerConfig#configNames`` and ``AdminClientConfig#configNames``.
_OF_JAVA = frozenset(
    """
    allow.auto.create.topics auto.commit.interval.ms auto.offset.reset bootstrap.controllers bootstrap.servers
    check.crcs client.dns.lookup client.id client.rack connections.max.idle.ms default.api.timeout.ms
    enable.auto.commit enable.metrics.push exclude.internal.topics fetch.max.bytes fetch.max.wait.ms fetch.min.bytes
    group.id group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms interceptor.classes
    isolation.level key.deserializer max.partition.fetch.bytes max.poll.interval.ms max.poll.records
    metadata.max.age.ms metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy metric.reporters
    metrics.num.samples metrics.recording.level metrics.sample.window.ms partition.assignment.strategy
    receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms request.timeout.ms retries
    retry.backoff.max.ms retry.backoff.ms sasl.client.callback.handler.class sasl.jaas.config
    sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.service.name
    sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor sasl.login.callback.handler.class
    sasl.login.class sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
    sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
    sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.mechanism sasl.oauthbearer.assertion.algorithm
    sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.exp.seconds
    sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.jti.include
    sasl.oauthbearer.assertion.claim.nbf.seconds sasl.oauthbearer.assertion.claim.sub
    sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file
    sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.template.file
    sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret
    sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
    sasl.oauthbearer.header.urlencode sasl.oauthbearer.jwks.endpoint.refresh.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
    sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class
    sasl.oauthbearer.scope sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name
    sasl.oauthbearer.token.endpoint.url security.protocol security.providers send.buffer.bytes session.timeout.ms
    share.acknowledgement.mode socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
    ssl.cipher.suites ssl.enabled.protocols ssl.endpoint.identification.algorithm ssl.engine.factory.class
    ssl.key.password ssl.keymanager.algorithm ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location
    ssl.keystore.password ssl.keystore.type ssl.protocol ssl.provider ssl.secure.random.implementation
    ssl.trustmanager.algorithm ssl.truststore.certificates ssl.truststore.location ssl.truststore.password
    ssl.truststore.type value.deserializer
    """.split()  # noqa: SIM905
)
# librdkafka's own properties that people use; librdkafka is asked about any others.
_OF_LIBRDKAFKA = (
    *("broker.address.family", "debug", "enable.ssl.certificate.verification", "sasl.username", "sasl.password"),
    *("sasl.oauthbearer.method", "sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret"),
    *("sasl.oauthbearer.scope", "socket.keepalive.enable", "ssl.ca.location", "ssl.ca.pem"),
    *("ssl.certificate.location", "ssl.certificate.pem", "ssl.key.location", "ssl.key.pem"),
)
# A custom class may take its own properties, and so may providers of secrets.
_OF_CUSTOM_CLASSES = ("config.providers", ".callback.handler.class", "sasl.login.class", "ssl.engine.factory.class")
_NO_SUCH = "No such configuration property"


def unknown_properties(properties: Mapping[str, str], where: str) -> list[str]:
    """Return a sentence for each property that neither Java's client nor librdkafka has.

    Args:
        where: The name of the property's setting in the sentence, e.g. ``kafka.options``.

    Example:
        >>> unknown_properties({"client.idd": "a"}, "kafka.options")
        ['kafka.options: there is no client property client.idd; did you mean client.id?']
    """
    names = [name.removeprefix("kafka.") for name in properties]
    takes_more = any(name.startswith(_OF_CUSTOM_CLASSES) or name.endswith(_OF_CUSTOM_CLASSES) for name in names)
    found = []
    for name in names:
        if name in _OF_JAVA or name in _OF_LIBRDKAFKA or is_of_spark(name) or _is_of_librdkafka(name):
            continue
        meant = did_you_mean(name, [*_OF_JAVA, *_OF_LIBRDKAFKA])
        if meant or not takes_more:
            found.append(f"{where}: there is no client property {name}{meant}")
    return found


def _is_of_librdkafka(name: str) -> bool:
    """Return whether librdkafka has a property: it rejects the first unknown one, and creates no client then."""
    from confluent_kafka import Consumer, KafkaException

    # The second property never exists, so that no client is created.
    try:
        Consumer({"group.id": "-", name: "", "rebalance.monitor.none": ""})
    except KafkaException as error:
        text = str(error.args[0].str())
        return not (text.startswith(_NO_SUCH) and f'"{name}"' in text)
    return True
