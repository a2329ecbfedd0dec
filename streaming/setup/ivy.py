"""Shell: fetches exact jars once, checks their sums and keeps them, with the Ivy inside pyspark."""

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

from streaming.setup.errors import SetupError
from streaming.setup.java import find_java
from streaming.setup.packages import spark_is_missing

CACHE_VARIABLE = "REBALANCE_MONITOR_CACHE"
# The name lacks the prefix REBALANCE_MONITOR_, since every such variable but the cache is a setting of the job.
SETTINGS_VARIABLE = "IVY_SETTINGS_FILE"
_CONNECT_TIMEOUT_MS = 20_000
_READ_TIMEOUT_MS = 60_000
# This is enough for fifty jars that all fail; Ivy names the reason before the list.
_TAIL_LINES = 2_000


def progress(line: str) -> None:
    """Write one line of progress for people, on a stream that programs do not read."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def cache_folder() -> Path:
    """Return the folder for fetched jars: `REBALANCE_MONITOR_CACHE`, else the user's cache."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute()
    user_cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(user_cache).expanduser().absolute() / "rebalance-monitor"


def fetch(
    ivy_file: Path, sums_file: Path, report: Callable[[str], None] = progress, *, is_summed: bool = False
) -> list[Path]:
    """Return the jars that an ivy file lists, from the cache or else from the network.

    Args:
        ivy_file: Exact coordinates, each `transitive="false"`.
        sums_file: lines of `sha256sum`, one for each jar and no other.
        report: Receives lines of progress; none if all jars exist.
        is_summed: Compare the sums of jars in the cache, too, and fetch all again if one differs.

    Returns:
        The jars, sorted by name, in a folder of their own. The folder appears whole or not at all, and its name holds
        the sum of both files, so a changed list gives another folder.

    Raises:
        SetupError: no Java, no network, no space, no right to write, or a jar with another sum.
    """
    sums = _read_sums(sums_file)
    digest = hashlib.sha256(ivy_file.read_bytes() + sums_file.read_bytes()).hexdigest()[:12]
    name = f"{sums_file.stem}-{digest}"
    root = cache_folder()
    folder = root / "jars" / name
    if _is_whole(folder, sums, is_summed):
        return [folder / jar for jar in sorted(sums)]
    with _one_at_a_time(root, name):
        if not _is_whole(folder, sums, is_summed):
            _fetch_into(folder, root / "partial" / name, ivy_file, sums, report)
    return [folder / jar for jar in sorted(sums)]


def _read_sums(sums_file: Path) -> dict[str, str]:
    pairs = (line.split() for line in sums_file.read_text().splitlines() if line.strip())
    return {jar: checksum for checksum, jar in pairs}


def _is_whole(folder: Path, sums: dict[str, str], is_summed: bool) -> bool:
    return all((folder / jar).is_file() and not (is_summed and _sum(folder / jar) != sums[jar]) for jar in sums)


def _sum(jar: Path) -> str:
    return hashlib.sha256(jar.read_bytes()).hexdigest()


@contextlib.contextmanager
def _one_at_a_time(root: Path, name: str) -> Iterator[None]:
    """Hold a lock: one process fetches while others that need the same jars wait."""
    partial = root / "partial"
    try:
        partial.mkdir(parents=True, exist_ok=True)
        lock = (partial / f"{name}.lock").open("w")
    except OSError as error:
        raise SetupError(
            f"The cache folder {root} cannot be written: {error.strerror}.",
            f"Make it writable, or choose another: export {CACHE_VARIABLE}=/a/folder/you/may/write",
        ) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch_into(
    folder: Path, partial: Path, ivy_file: Path, sums: dict[str, str], report: Callable[[str], None]
) -> None:
    """Retrieve into `partial`, check, and rename. What was fetched before a failure is not fetched twice."""
    try:
        retrieved = partial / "retrieved"
        shutil.rmtree(retrieved, ignore_errors=True)
        retrieved.mkdir(parents=True)
        title = ivy_file.stem if ivy_file.stem != "ivy" else "Spark"
        report(f"{title}: looking up {len(sums)} jars")
        _run_ivy(ivy_file, partial, retrieved, len(sums), lambda line: report(f"{title}: {line}"))
        _check(retrieved, sums, partial)
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        retrieved.rename(folder)
        shutil.rmtree(partial, ignore_errors=True)
    except OSError as error:
        raise SetupError(
            f"Fetching jars into {partial} failed: {error.strerror or error}.",
            f"Free space or grant write permission there, or choose another folder: export {CACHE_VARIABLE}=/a/folder",
        ) from error


def _run_ivy(ivy_file: Path, partial: Path, retrieved: Path, count: int, report: Callable[[str], None]) -> None:
    java = find_java()
    command = [
        str(java.java),
        "-Xmx256m",
        f"-Divy.default.ivy.user.dir={partial}",
        f"-Dsun.net.client.defaultConnectTimeout={_CONNECT_TIMEOUT_MS}",
        f"-Dsun.net.client.defaultReadTimeout={_READ_TIMEOUT_MS}",
        *_proxy_options(),
        "-jar",
        str(_ivy_jar()),
        *_settings_options(),
        *("-ivy", str(ivy_file), "-cache", str(partial / "ivy")),
        *("-retrieve", f"{retrieved}/[artifact]-[revision](-[classifier]).[ext]"),
    ]
    tail: list[str] = []
    fetched = 0
    started = time.monotonic()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as ivy:
        assert ivy.stdout is not None
        size = ""
        for line in ivy.stdout:
            if "downloading " in line or re.search(r"\((\d+)kB\)", line) is None:
                tail = [*tail, line.rstrip()][-_TAIL_LINES:]
            if found := re.search(r"\(([1-9]\d*)kB\)", line):
                size = f"{found[1]} kB"
            if done := re.search(r"\[SUCCESSFUL \] \S+#(\S+?);(\S+?)!", line):
                fetched += 1
                report(f"{fetched} of {count}  {done[1]}-{done[2]}.jar  {size}")
    if ivy.returncode != 0:
        raise _explained(tail)
    report(f"{count} jars in {time.monotonic() - started:.0f} s")


def _ivy_jar() -> Path:
    """Return the Ivy jar inside pyspark, found without importing pyspark."""
    spec = importlib.util.find_spec("pyspark")
    places = list(spec.submodule_search_locations or []) if spec else []
    jars = sorted(jar for place in places for jar in Path(place).glob("jars/ivy-*.jar"))
    if not jars:
        raise spark_is_missing()
    return jars[-1]


def _settings_options() -> list[str]:
    settings = os.environ.get(SETTINGS_VARIABLE)
    return ["-settings", settings] if settings else []


def _proxy_options() -> list[str]:
    """Pass the proxy of the environment to Java, which does not read it."""
    proxies = urllib.request.getproxies()
    options = []
    for scheme in ("http", "https"):
        proxy = urlsplit(proxies.get(scheme, ""))
        if proxy.hostname:
            options.append(f"-D{scheme}.proxyHost={proxy.hostname}")
            options.append(f"-D{scheme}.proxyPort={proxy.port or 80}")
    if options and (without := proxies.get("no")):
        hosts = [host.strip() for host in without.split(",") if host.strip()]
        options.append("-Dhttp.nonProxyHosts=" + "|".join(f"*{h}" if h.startswith(".") else h for h in hosts))
    return options


def _explained(tail: list[str]) -> SetupError:
    text = "\n".join(tail)
    if "No space left" in text:
        return SetupError("There is no space left for the jars.", f"Make space, or export {CACHE_VARIABLE}=/a/folder")
    if re.search(
        r"UnknownHost|Host \S+ not found|ConnectException|SocketTimeout|NoRouteToHost|Network is unreachable", text
    ):
        return SetupError(
            "The jars could not be fetched: the Maven repository cannot be reached.",
            "Connect to the network and run again; what was fetched is kept.\n"
            "Behind a proxy: export https_proxy=http://PROXY:PORT\n"
            f"With a mirror of your own: export {SETTINGS_VARIABLE}=/path/to/ivysettings.xml\n"
            f"On a machine without network: copy the folder {cache_folder()} from one that has it.",
        )
    if re.search(r"SSLHandshake|PKIX|CertificateException|trustAnchors", text):
        return SetupError(
            "The jars could not be fetched: Java does not trust the certificate of the Maven repository or proxy.",
            "Give Java the certificates of your network:\n"
            "export JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore=/path/to/truststore",
        )
    missing = [line.strip() for line in tail if "not found" in line or "FAILED" in line]
    return SetupError(
        "The jars could not be fetched; Ivy reports:\n" + "\n".join(missing or tail),
        "Run again. If it fails again, name a repository that has them:\n"
        f"export {SETTINGS_VARIABLE}=/path/to/ivysettings.xml",
    )


def _check(retrieved: Path, sums: dict[str, str], partial: Path) -> None:
    """Compare every jar with its sum; an unlisted jar is as wrong as a changed one."""
    wrong = []
    found = {jar.name for jar in retrieved.iterdir()}
    for jar in sorted(found | set(sums)):
        if jar not in found:
            wrong.append(f"{jar} is missing")
        elif jar not in sums:
            wrong.append(f"{jar} is not in the list of sums")
        elif _sum(retrieved / jar) != sums[jar]:
            wrong.append(f"{jar} differs from its SHA-256 in the list")
    if wrong:
        shutil.rmtree(partial, ignore_errors=True)
        raise SetupError(
            "Fetched jars differ from those that the project lists: " + "; ".join(wrong) + ".",
            "They were deleted. Run again; if it fails again, the repository or proxy serves other files:\n"
            "do not use it.",
        )
