"""Shell: certificates from Java's trust stores, read with the keytool of any Java."""

from __future__ import annotations

import os
import re
import subprocess

from streaming.setup.errors import SetupError
from streaming.setup.java import find_java

_TIMEOUT_S = 30
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_PASSWORD_VARIABLE = "REBALANCE_MONITOR_TRUST_STORE_PASSWORD"


def certificates_of(store: str, password: str | None) -> str:
    """Return the certificates of a JKS or PKCS12 store as PEM.

    Raises:
        SetupError: The store cannot be read, or has no certificate.
    """
    keytool = find_java().home / "bin" / "keytool"
    command = [str(keytool), "-list", "-rfc", "-keystore", store]
    environment = dict(os.environ)
    if password is not None:
        # The password is not an argument, because everybody on the machine could read it.
        environment[_PASSWORD_VARIABLE] = password
        command += ["-storepass:env", _PASSWORD_VARIABLE]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False, input="\n"
        )
    except OSError as error:
        raise SetupError(f"{keytool} cannot be run: {error.strerror}", "install a Java 17 with its tools") from error
    found = _CERTIFICATE.findall(done.stdout)
    if not found:
        lines = (done.stdout + done.stderr).strip().splitlines()
        raise SetupError(
            f"no certificate could be read from the trust store {store}",
            f"keytool reports: {lines[0] if lines else 'nothing'}\n"
            "check ssl.truststore.location and ssl.truststore.password, or give a PEM file in ssl.ca.location",
        )
    return "\n".join(found) + "\n"
