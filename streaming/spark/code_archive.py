"""Shell: the monitor's own code, its files of `conf/` and custom strategies as one archive for Python's path."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path

from streaming.allocation.plugin_files import package_files, plugin_files
from streaming.settings.conf_files import conf_folder

_PACKAGES = ("streaming", "udfs")
# The fixed time gives archives of the same files the same bytes.
_TIME = (1980, 1, 1, 0, 0, 0)


def write_code_archive(folder: Path) -> Path:
    """Write the archive, from wherever the code was imported: a checkout, an installation, another archive.

    Returns:
        Its path; the name has a hash of the content, because an executor never reads a name twice.
    """
    content: dict[str, bytes] = {}
    for package in _PACKAGES:
        content.update(package_files(package))
    content.update(package_files("streaming/conf", conf_folder()))
    for name, data in plugin_files():
        content.setdefault(name, data)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(content.items()):
            archive.writestr(zipfile.ZipInfo(name, _TIME), data, zipfile.ZIP_DEFLATED)
    digest = hashlib.sha256(packed.getvalue()).hexdigest()[:12]
    written = folder / f"rebalance-monitor-{digest}.zip"
    written.write_bytes(packed.getvalue())
    return written
