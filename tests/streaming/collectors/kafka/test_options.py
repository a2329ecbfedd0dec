"""One set of properties for two clients."""

from __future__ import annotations

import pytest

from streaming.collectors.kafka.options import KafkaOptions
from streaming.setup.errors import SetupError

PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="p\\"w;=";'


def options(**properties: str) -> KafkaOptions:
    return KafkaOptions("h:1", "c", {name.replace("_", "."): value for name, value in properties.items()})


def test_javas_names_pass_to_spark_with_its_prefix() -> None:
    spark = options(security_protocol="SASL_SSL", kafka_sasl_mechanism="PLAIN", sasl_jaas_config=PLAIN).spark()
    assert spark == {
        "kafka.bootstrap.servers": "h:1",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": PLAIN,
    }


def test_a_jaas_line_is_a_name_and_a_password_for_librdkafka() -> None:
    settings = options(security_protocol="SASL_SSL", sasl_mechanism="PLAIN", sasl_jaas_config=PLAIN).librdkafka()
    assert settings == {
        "bootstrap.servers": "h:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "me",
        "sasl.password": 'p"w;=',
    }


@pytest.mark.parametrize(
    ("mechanism", "module"), [("PLAIN", "PlainLoginModule"), ("SCRAM-SHA-512", "ScramLoginModule")]
)
def test_a_name_and_a_password_are_a_jaas_line_for_java(mechanism: str, module: str) -> None:
    made = options(sasl_mechanism=mechanism, sasl_username="me", sasl_password='a"b\\c')
    jaas = made.spark()["kafka.sasl.jaas.config"]
    assert jaas.split()[0].endswith(module)
    assert jaas.endswith(r'required username="me" password="a\"b\\c";')
    assert "kafka.sasl.username" not in made.spark()
    again = KafkaOptions("h:1", "c", {"sasl.jaas.config": jaas}).librdkafka()
    assert (again["sasl.username"], again["sasl.password"]) == ("me", 'a"b\\c')


def test_the_user_is_named_for_the_rights() -> None:
    assert options(sasl_jaas_config=PLAIN).user == options(sasl_username="me").user == "me"
    assert options().user is None


@pytest.mark.parametrize(
    ("jaas", "expected"),
    [
        (
            'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="/k" principal="m@R" '
            'serviceName="kafka";',
            {
                "sasl.kerberos.principal": "m@R",
                "sasl.kerberos.keytab": "/k",
                "sasl.kerberos.service.name": "kafka",
            },
        ),
        (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required clientId='i' "
            "clientSecret='s' scope='all';",
            {
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.client.id": "i",
                "sasl.oauthbearer.client.secret": "s",
                "sasl.oauthbearer.scope": "all",
            },
        ),
    ],
)
def test_other_logins_are_translated(jaas: str, expected: dict[str, str]) -> None:
    assert options(sasl_jaas_config=jaas).librdkafka() == {"bootstrap.servers": "h:1", **expected}


def test_an_unsupported_login_is_named() -> None:
    with pytest.raises(SetupError, match="MyLoginModule"):
        options(sasl_jaas_config="my.MyLoginModule required a=b;").librdkafka()


def test_pem_files_are_taken_as_they_are() -> None:
    settings = options(
        ssl_truststore_type="PEM", ssl_truststore_location="/ca.pem", ssl_keystore_type="PEM",
        ssl_keystore_location="/me.pem", ssl_key_password="k",
    ).librdkafka()  # fmt: skip
    assert settings == {
        "bootstrap.servers": "h:1",
        "ssl.ca.location": "/ca.pem",
        "ssl.certificate.location": "/me.pem",
        "ssl.key.location": "/me.pem",
        "ssl.key.password": "k",
    }


def test_a_key_store_that_only_java_reads_is_refused_with_the_remedy() -> None:
    with pytest.raises(SetupError, match="keytool -importkeystore"):
        options(ssl_keystore_location="/me.jks").librdkafka()
    assert options(ssl_keystore_location="/me.p12").librdkafka()["ssl.keystore.location"] == "/me.p12"


@pytest.mark.parametrize(("java", "librdkafka"), [("", "none"), ("https", "https")])
def test_checking_the_brokers_name_can_be_switched_off(java: str, librdkafka: str) -> None:
    settings = options(ssl_endpoint_identification_algorithm=java).librdkafka()
    assert settings["ssl.endpoint.identification.algorithm"] == librdkafka


def test_settings_that_spark_sets_itself_are_not_passed_on() -> None:
    spark = options(group_id="mine", auto_offset_reset="latest", fetchOffset_numRetries="9").spark()
    assert spark == {"kafka.bootstrap.servers": "h:1", "fetchOffset.numRetries": "9"}


def test_secrets_do_not_show() -> None:
    made = options(sasl_jaas_config=PLAIN, sasl_password="hidden")
    assert "hidden" not in repr(made)
    assert PLAIN not in repr(made)
