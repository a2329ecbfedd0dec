"""A throw-away authority and the certificate of a broker on this machine, made with Java's keytool."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from streaming.setup.java import find_java
from tests.kit.processes import QUICK_START

PASSWORD = "of-the-kit"
_TIMEOUT_S = 120
_KEY_TOOL = Path(__file__).parent / "java" / "KeyTool.java"
_KEY = ("-keyalg", "EC", "-validity", "2")
_OPTIONS = (
    *QUICK_START,
    *("--add-exports", "java.base/sun.security.tools.keytool=ALL-UNNAMED"),
)


@dataclass(frozen=True)
class Certificates:
    """Where they lie.

    Attributes:
        server: PKCS12 with the broker's key and its certificate for 127.0.0.1, signed by the authority.
        server_pem: The same as one PEM file, as Python's servers want it.
        authority: PEM of the authority's certificate. trust: The same as a trust store of Java.
    """

    server: Path
    server_pem: Path
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
    alternative = ("-ext", "san=ip:127.0.0.1")
    commands = (
        _command(ca, "-genkeypair", "-alias", "ca", "-dname", "CN=throw-away", "-ext", "bc:c", *_KEY),
        _command(ca, "-exportcert", "-rfc", "-alias", "ca", "-file", pem),
        _command(server, "-genkeypair", "-alias", "server", "-dname", "CN=broker", *_KEY),
        _command(server, "-certreq", "-alias", "server", "-file", request),
        _command(ca, "-gencert", "-rfc", "-alias", "ca", "-infile", request, "-outfile", signed, *alternative),
        *(_command(store, "-importcert", "-noprompt", "-alias", "ca", "-file", pem) for store in (server, trust)),
        _command(server, "-importcert", "-noprompt", "-alias", "server", "-file", signed),
    )
    done = subprocess.run(
        [find_java().java, *_OPTIONS, _KEY_TOOL, server, PASSWORD, "server"],
        input="\n".join(commands),
        check=True,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
    )
    server_pem = folder / "server-key.pem"
    server_pem.write_text(done.stdout)
    return Certificates(server, server_pem, pem, trust)


def _command(store: Path, command: str, *arguments: str | Path) -> str:
    command_line = (command, "-storetype", "PKCS12", "-keystore", store, "-storepass", PASSWORD, *arguments)
    return "\t".join(map(str, command_line))
