"""A throw-away authority and the certificate of a broker on this machine, made with Java's keytool."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from streaming.setup.java import find_java

PASSWORD = "of-the-kit"
_TIMEOUT_S = 60
_TO_PEM = Path(__file__).parent / "java" / "KeyStoreToPem.java"
_KEY = ("-keyalg", "EC", "-validity", "2")


@dataclass(frozen=True)
class Certificates:
    """Where they lie.

    Attributes:
        server: PKCS12 with the broker's key and its certificate for 127.0.0.1, signed by the authority.
        authority: PEM of the authority's certificate. trust: The same as a trust store of Java.
    """

    server: Path
    authority: Path
    trust: Path

    def server_settings(self) -> dict[str, str]:
        """Return lines of server.properties."""
        return {
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(self.server),
            "ssl.keystore.password": PASSWORD,
            **self.client_settings(),
        }

    def client_settings(self) -> dict[str, str]:
        """Return what a Java client needs to trust the broker."""
        return {"ssl.truststore.location": str(self.trust), "ssl.truststore.password": PASSWORD}


def make_certificates(folder: Path) -> Certificates:
    """Make an authority, and a certificate for 127.0.0.1 that it signed."""
    folder.mkdir(parents=True, exist_ok=True)
    ca, server, trust = folder / "ca.p12", folder / "server.p12", folder / "trust.p12"
    pem, request, signed = folder / "ca.pem", folder / "server.csr", folder / "server.pem"
    _keytool(ca, "-genkeypair", "-alias", "ca", "-dname", "CN=throw-away", "-ext", "bc:c", *_KEY)
    _keytool(ca, "-exportcert", "-rfc", "-alias", "ca", "-file", pem)
    _keytool(server, "-genkeypair", "-alias", "server", "-dname", "CN=broker", *_KEY)
    _keytool(server, "-certreq", "-alias", "server", "-file", request)
    alternative = ("-ext", "san=ip:127.0.0.1")
    _keytool(ca, "-gencert", "-rfc", "-alias", "ca", "-infile", request, "-outfile", signed, *alternative)
    for store in (server, trust):
        _keytool(store, "-importcert", "-noprompt", "-alias", "ca", "-file", pem)
    _keytool(server, "-importcert", "-noprompt", "-alias", "server", "-file", signed)
    return Certificates(server, pem, trust)


def server_pem(certificates: Certificates) -> Path:
    """Write the broker's key and its certificates as one PEM file, as Python's servers want them."""
    command = [find_java().java, _TO_PEM, certificates.server, PASSWORD, "server"]
    done = subprocess.run(command, check=True, capture_output=True, timeout=_TIMEOUT_S)
    pem = certificates.server.with_name("server-key.pem")
    pem.write_bytes(done.stdout)
    return pem


def _keytool(store: Path, command: str, *arguments: str | Path) -> None:
    keytool = find_java().home / "bin" / "keytool"
    subprocess.run(
        [keytool, command, "-storetype", "PKCS12", "-keystore", store, "-storepass", PASSWORD, *arguments],
        check=True,
        capture_output=True,
        timeout=_TIMEOUT_S,
    )
