"""Shell: finds the Java that Spark, Ivy and the tests' brokers run on."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from streaming.setup.errors import SetupError

# Source: Spark 4.2.0, docs/index.md#Downloading: "Spark runs on Java 17/21".
SUPPORTED_VERSIONS = (17, 21)
_ANSWER_TIMEOUT_S = 30
# Linux distributions and macOS install Java here without putting it on the PATH.
_USUAL_PLACES = ("/usr/lib/jvm/*", "/Library/Java/JavaVirtualMachines/*/Contents/Home")


@dataclass(frozen=True)
class JavaInstallation:
    """A Java whose reported version is supported."""

    home: Path
    java: Path
    version: int

    @property
    def javac(self) -> Path:
        """Return the compiler of this installation.

        Raises:
            SetupError: this is a runtime without a compiler.
        """
        compiler = self.home / "bin" / "javac"
        if not compiler.exists():
            raise SetupError(
                f"The Java at {self.home} has no compiler (javac); the tests need one.",
                f"Install a JDK {SUPPORTED_VERSIONS[0]}, not only a runtime (Debian: openjdk-17-jdk-headless).",
            )
        return compiler


def find_java(environment: Mapping[str, str] = os.environ) -> JavaInstallation:
    """Return the first suitable Java: the one of JAVA_HOME, else the one on the PATH.

    The caller passes `home` to Spark as JAVA_HOME, because Spark itself would use an unsupported
    JAVA_HOME without a check.

    Raises:
        SetupError: There is none, or only unsuitable ones; the message names each and the reason.
    """
    unfit: list[str] = []
    for origin, java in _candidates(environment):
        found = _read_version(java)
        if isinstance(found, JavaInstallation):
            if found.version in SUPPORTED_VERSIONS:
                return found
            unfit.append(f"{origin} is Java {found.version} ({found.home})")
        else:
            unfit.append(f"{origin} does not answer: {found}")
    wanted = " or ".join(str(version) for version in SUPPORTED_VERSIONS)
    if not unfit:
        problem = f"No Java was found: JAVA_HOME is not set and there is no java on the PATH. Java {wanted} is needed."
    else:
        problem = f"No supported Java was found, {wanted} is needed: " + "; ".join(unfit) + "."
    raise SetupError(problem, _remedy())


def _candidates(environment: Mapping[str, str]) -> list[tuple[str, Path]]:
    candidates = []
    home = environment.get("JAVA_HOME")
    if home:
        candidates.append((f"JAVA_HOME={home}", Path(home) / "bin" / "java"))
    on_path = shutil.which("java", path=environment.get("PATH"))
    if on_path:
        candidates.append((f"the java on the PATH ({on_path})", Path(on_path)))
    return candidates


def _read_version(java: Path) -> JavaInstallation | str:
    """Run this java for its version and home; a string is the reason of a failure."""
    try:
        answer = subprocess.run(
            [java, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=_ANSWER_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    # Java 8 and older print the specification as 1.8.
    version = re.search(r"java\.specification\.version = (?:1\.)?(\d+)", answer.stderr)
    home = re.search(r"java\.home = (.+)", answer.stderr)
    if answer.returncode != 0 or version is None or home is None:
        return (answer.stderr.strip() or f"exit code {answer.returncode}").splitlines()[-1]
    return JavaInstallation(home=Path(home[1].strip()), java=java, version=int(version[1]))


def _remedy() -> str:
    lines = []
    for pattern in _USUAL_PLACES:
        for home in sorted({place.resolve() for place in Path("/").glob(pattern.lstrip("/"))}):
            found = _read_version(home / "bin" / "java")
            if isinstance(found, JavaInstallation) and found.version in SUPPORTED_VERSIONS:
                lines.append(f"Java {found.version} is installed but not selected: export JAVA_HOME={home}")
    if not lines:
        lines.append("Debian and Ubuntu: apt install openjdk-17-jdk-headless; macOS: brew install openjdk@17.")
        lines.append("Or point JAVA_HOME at one that is already there.")
    return "\n".join(lines)
