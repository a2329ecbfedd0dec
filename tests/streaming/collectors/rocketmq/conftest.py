from pathlib import Path

import pytest

from tests.kit.certificates import make_certificates


@pytest.fixture(scope="session")
def tls_of_this_machine(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A server's key with its certificate for 127.0.0.1, and the authority that signed it; both PEM."""
    certificates = make_certificates(tmp_path_factory.mktemp("tls"))
    return certificates.server_pem, certificates.authority
