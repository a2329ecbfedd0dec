"""Certificates out of Java's trust stores."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from streaming.collectors.kafka import truststore
from streaming.collectors.kafka.options import KafkaOptions
from streaming.collectors.kafka.truststore import certificates_of
from streaming.setup.errors import SetupError
from streaming.setup.java import JavaInstallation, find_java
from tests.kit.own_view import patch_in


def options(**properties: str) -> KafkaOptions:
    return KafkaOptions("h:1", "c", {name.replace("_", "."): value for name, value in properties.items()})


@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_the_certificates_of_javas_trust_stores_are_read(tmp_path: Path, kind: str) -> None:
    keytool = find_java().home / "bin" / "keytool"
    store = tmp_path / "trust"
    subprocess.run(
        [
            *(keytool, "-genkeypair", "-alias", "ca", "-dname", "CN=ca", "-keyalg", "EC", "-storetype", kind),
            *("-keystore", store, "-storepass", "secret1", "-keypass", "secret1"),
        ],
        check=True,
        capture_output=True,
    )
    made = options(ssl_truststore_location=str(store), ssl_truststore_type=kind, ssl_truststore_password="secret1")
    assert made.librdkafka()["ssl.ca.pem"].startswith("-----BEGIN CERTIFICATE-----\n")
    assert made.spark()["kafka.ssl.truststore.location"] == str(store)


def test_a_trust_store_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="no certificate could be read"):
        options(ssl_truststore_location=str(tmp_path / "none.jks"), ssl_truststore_password="p").librdkafka()


def test_the_password_is_no_argument_of_the_program_that_reads_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []

    def run(command: list[str], *, env: dict[str, str], **_: object) -> subprocess.CompletedProcess[str]:
        given.append((" ".join(command), env))
        certificate = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----"
        return subprocess.CompletedProcess(
            command, 0, stdout=f"Alias a\n{certificate}\nAlias b\n{certificate}\n", stderr=""
        )

    patch_in(monkeypatch, truststore, "subprocess", run=run)
    monkeypatch.setattr(truststore, "find_java", lambda: JavaInstallation(Path("/java"), Path("/java/bin/java"), 17))
    assert certificates_of("/store", "hush").count("-----BEGIN CERTIFICATE-----") == 2
    [(command, environment)] = given
    assert command.startswith("/java/bin/keytool -list -rfc -keystore /store")
    assert "hush" not in command
    assert "hush" in environment.values()


def test_the_error_of_keytool_is_part_of_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(truststore, "find_java", lambda: JavaInstallation(Path("/java"), Path("/java/bin/java"), 17))
    done = subprocess.CompletedProcess([], 1, stdout="keytool error: password was incorrect\nmore", stderr="")
    patch_in(monkeypatch, truststore, "subprocess", run=lambda *_, **__: done)
    with pytest.raises(SetupError, match="could be read from the trust store /store") as caught:
        certificates_of("/store", None)
    assert caught.value.remedy.startswith("keytool reports: keytool error: password was incorrect\ncheck")

    def absent(*_: object, **__: object) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    patch_in(monkeypatch, truststore, "subprocess", run=absent)
    with pytest.raises(SetupError, match="/java/bin/keytool cannot be run: No such file"):
        certificates_of("/store", None)
