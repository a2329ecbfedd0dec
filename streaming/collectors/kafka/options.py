"""Shell: one set of client properties, under Java's names, for both clients: Java's inside Spark, and librdkafka.

Spark reads ``__consumer_offsets`` with kafka-clients; the collector and the check of permissions use librdkafka. Users
write Java's names (``sasl.jaas.config``, ``ssl.truststore.location``), because these are in every guide; librdkafka's
own short forms ``sasl.username`` and ``sasl.password`` are understood too, and translated for Java.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from streaming.collectors.kafka.truststore import certificates_of
from streaming.setup.errors import SetupError

JAAS = "sasl.jaas.config"
_PREFIX = "kafka."
_SPARK_ONLY = re.compile(
    r"^(fetchOffset|kafkaConsumer|groupIdPrefix|minPartitions|maxRecordsPerPartition)", re.IGNORECASE
)
# Spark sets these itself and rejects them from others.
_SET_BY_SPARK = frozenset(
    {
        "auto.offset.reset",
        "enable.auto.commit",
        "group.id",
        "interceptor.classes",
        "key.deserializer",
        "value.deserializer",
    }
)
# These have the same name and meaning in both clients.
_SAME = frozenset(
    {
        "client.id",
        "client.rack",
        "reconnect.backoff.ms",
        "reconnect.backoff.max.ms",
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.min.time.before.relogin",
        "sasl.kerberos.service.name",
        "sasl.mechanism",
        "security.protocol",
        "socket.connection.setup.timeout.ms",
        "ssl.cipher.suites",
        "ssl.key.password",
        "ssl.keystore.password",
    }
)
_RENAMED = {
    "metadata.max.age.ms": "metadata.max.age.ms",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "request.timeout.ms": "socket.timeout.ms",
    "sasl.oauthbearer.token.endpoint.url": "sasl.oauthbearer.token.endpoint.url",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.truststore.certificates": "ssl.ca.pem",
}
# These are librdkafka's own; Java has no such options.
_ONLY_LIBRDKAFKA = re.compile(
    r"^(ssl\.(ca|certificate|key)\.(location|pem)|broker\.address\.family|debug|enable\.ssl\.certificate\.verification"
    r"|sasl\.(username|password)|socket\.keepalive\.enable|sasl\.oauthbearer\.(method|client\.id|client\.secret|scope))$"
)
_JAAS_MODULE = re.compile(r"^\s*([\w.$]+)\s+(?:required|requisite|sufficient|optional)\b(.*?);?\s*$", re.DOTALL)
_JAAS_PAIR = re.compile(r'([\w.]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|\'([^\']*)\'|([^\s;]+))')


@dataclass(frozen=True)
class KafkaOptions:
    """The address of a cluster, its login, and its name in the monitor.

    Attributes:
        properties: Client properties; a leading ``kafka.`` is dropped. Never shown, because they hold secrets.
        include_groups, exclude_groups: The followed groups, as patterns for whole group ids.
        ends_interval_ms: How often the end offsets of all partitions are read; 0 for never.
        unread_groups: Of so many groups it is read then when their next unread messages were written.
    """

    bootstrap_servers: str
    cluster: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    include_groups: tuple[str, ...] = (".*",)
    exclude_groups: tuple[str, ...] = ()
    ends_interval_ms: int = 0
    unread_groups: int = 0

    @property
    def user(self) -> str | None:
        """Return the user that logs in, if the options name one; in Kafka the principal is ``User:<this>``."""
        named = self._clean().get("sasl.username") or _jaas_values(self._clean().get(JAAS, "")).get("username")
        return named or None

    def spark(self) -> dict[str, str]:
        """Return the options for Spark's Kafka source."""
        options: dict[str, str] = {f"{_PREFIX}bootstrap.servers": self.bootstrap_servers}
        properties = self._clean()
        login = _jaas_of(properties)
        if login is not None:
            properties[JAAS] = login
        for key, value in properties.items():
            if _SPARK_ONLY.match(key):
                options[key] = value
            elif key not in _SET_BY_SPARK and not _ONLY_LIBRDKAFKA.match(key):
                options[f"{_PREFIX}{key}"] = value
        return options

    def librdkafka(self) -> dict[str, str]:
        """Return the properties for a librdkafka client.

        Raises:
            SetupError: An option of Java is not supported there.
        """
        properties = self._clean()
        translated = {"bootstrap.servers": self.bootstrap_servers}
        for key, value in properties.items():
            if key in _SAME or _ONLY_LIBRDKAFKA.match(key):
                translated[key] = value
            elif key in _RENAMED:
                translated[_RENAMED[key]] = value
        if "ssl.endpoint.identification.algorithm" in properties:
            # Java disables it with an empty text.
            algorithm = properties["ssl.endpoint.identification.algorithm"]
            translated["ssl.endpoint.identification.algorithm"] = algorithm or "none"
        translated |= _trust(properties) | _key(properties) | _login(properties)
        return translated

    def _clean(self) -> dict[str, str]:
        return {key.removeprefix(_PREFIX): value for key, value in self.properties.items()}


def is_of_spark(name: str) -> bool:
    """Return whether a property is one of Spark's Kafka source."""
    return bool(_SPARK_ONLY.match(name))


def _jaas_values(jaas: str) -> dict[str, str]:
    """Parse the values of a JAAS line.

    Example:
        >>> _jaas_values('a.b.PlainLoginModule required username="me" password="p\\\\"w";')
        {'username': 'me', 'password': 'p"w'}
    """
    module = _JAAS_MODULE.match(jaas)
    if module is None:
        return {}
    return {
        name: re.sub(r"\\(.)", r"\1", double) if double or not (single or bare) else single or bare
        for name, double, single, bare in _JAAS_PAIR.findall(module[2])
    }


def _jaas_of(properties: Mapping[str, str]) -> str | None:
    """Create Java's login line from a name and a password."""
    if JAAS in properties or "sasl.username" not in properties:
        return None
    mechanism = properties.get("sasl.mechanism", "PLAIN").upper()
    module = (
        "org.apache.kafka.common.security.scram.ScramLoginModule"
        if mechanism.startswith("SCRAM")
        else "org.apache.kafka.common.security.plain.PlainLoginModule"
    )
    user, password = (
        re.sub(r'(["\\])', r"\\\1", properties.get(key, "")) for key in ("sasl.username", "sasl.password")
    )
    return f'{module} required username="{user}" password="{password}";'


def _login(properties: Mapping[str, str]) -> dict[str, str]:
    jaas = properties.get(JAAS)
    if jaas is None:
        return {}
    values = _jaas_values(jaas)
    module = jaas.split()[0].rpartition(".")[2] if jaas.split() else ""
    if module in ("PlainLoginModule", "ScramLoginModule") and "username" in values:
        return {"sasl.username": values["username"], "sasl.password": values.get("password", "")}
    if module == "Krb5LoginModule":
        wanted = {"principal": "sasl.kerberos.principal", "keyTab": "sasl.kerberos.keytab"}
        login = {wanted[name]: value for name, value in values.items() if name in wanted}
        if "serviceName" in values:
            login["sasl.kerberos.service.name"] = values["serviceName"]
        return login
    if module == "OAuthBearerLoginModule" and "clientId" in values:
        login = {
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": values["clientId"],
            "sasl.oauthbearer.client.secret": values.get("clientSecret", ""),
        }
        return login | ({"sasl.oauthbearer.scope": values["scope"]} if "scope" in values else {})
    raise SetupError(
        f"{JAAS} cannot be used: {module or 'it is empty'} with {', '.join(sorted(values)) or 'no values'}",
        "supported are PlainLoginModule and ScramLoginModule (username, password),\n"
        "OAuthBearerLoginModule (clientId, clientSecret) and Krb5LoginModule (principal, keyTab)",
    )


def _trust(properties: Mapping[str, str]) -> dict[str, str]:
    place = properties.get("ssl.truststore.location")
    if place is None or any(key.startswith("ssl.ca.") for key in properties):
        return {}
    if properties.get("ssl.truststore.type", "JKS").upper() == "PEM":
        return {"ssl.ca.location": place}
    return {"ssl.ca.pem": certificates_of(place, properties.get("ssl.truststore.password"))}


def _key(properties: Mapping[str, str]) -> dict[str, str]:
    place = properties.get("ssl.keystore.location")
    if place is None or any(key.startswith(("ssl.certificate.", "ssl.key.l", "ssl.key.pem")) for key in properties):
        return {}
    kind = properties.get("ssl.keystore.type", "JKS").upper()
    if kind == "PEM":
        return {"ssl.certificate.location": place, "ssl.key.location": place}
    if kind == "PKCS12" or place.endswith((".p12", ".pfx")):
        return {"ssl.keystore.location": place}
    raise SetupError(
        f"the key store {place} is a JKS, which only Java reads",
        f"convert it to PKCS12: keytool -importkeystore -srckeystore {place} -destkeystore client.p12 "
        "-deststoretype PKCS12\nand name that in ssl.keystore.location, with ssl.keystore.type = PKCS12",
    )
