"""Debian's Chromium: found, or installed where that is possible; never a browser that is downloaded from elsewhere."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

# Nothing that a browser does on its own account; the sandbox needs rights that containers lack.
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


def chromium_path() -> str:
    """Return the path of Chromium; install it where this process may.

    Raises:
        RuntimeError: It is missing and cannot be installed; the message says how to.
    """
    found = shutil.which("chromium")
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = {"env": os.environ | {"DEBIAN_FRONTEND": "noninteractive"}, "capture_output": True}
        subprocess.run(["apt-get", "update"], check=False, **quiet)
        subprocess.run(["apt-get", "install", "-y", "--no-install-recommends", "chromium"], check=False, **quiet)
        found = shutil.which("chromium")
    if found is None:
        raise RuntimeError(
            "the tests of the pages need Chromium: apt-get install chromium (as root), then run them again"
        )
    return found


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start Chromium without a window, until the block is left."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=[*ARGUMENTS])
        try:
            yield browser
        finally:
            browser.close()
