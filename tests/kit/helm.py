"""Helm: the one on the PATH, or the one that `python -m tests.kit.helm` has built into the cache.

Building it takes six minutes on two busy cores and needs Go, so no test does it by itself.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from streaming.setup.ivy import cache_folder, progress

VERSION = "v3.19.0"
MISSING = "no helm on the PATH; `python -m tests.kit.helm` builds one into the cache (Go, six minutes)"


def _built() -> Path:
    return cache_folder() / "tools" / f"helm-{VERSION}" / "helm"


def find_helm() -> str | None:
    """Return the helm of this machine; None if it has none."""
    return str(_built()) if _built().exists() else shutil.which("helm")


def main() -> int:
    """Build it, if it is missing."""
    if find_helm() is None:
        folder = _built().parent
        folder.mkdir(parents=True)
        environment = {**os.environ, "GOBIN": str(folder), "GOFLAGS": "-mod=mod"}
        command = ["go", "install", f"helm.sh/helm/v3/cmd/helm@{VERSION}"]
        subprocess.run(command, env=environment, cwd=folder, check=True)
    progress(f"helm: {find_helm()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
