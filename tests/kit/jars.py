"""The jars and compiled classes of the kit: fetched like Spark's own, checked, kept in the same cache."""

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from streaming.setup import ivy
from streaming.setup.errors import SetupError
from streaming.setup.java import find_java

_HERE = Path(__file__).resolve().parent
JAVA = _HERE / "java"
# The programs of java/, and against which jars each is compiled.
_PROGRAMS = {
    "Guarded": (
        *("kafka-1.0.2", "kafka-4.1.1", "zookeeper-3.9.4", "metaq-server-1.4.6.2"),
        *("rocketmq-server-4.9.7", "rocketmq-server-5.5.0", "s3proxy-4.1.0"),
    ),
    "GrpcMember": ("rocketmq-client-java-5.0.8",),
    "GroupMember": ("kafka-1.0.2", "kafka-clients-2.8.2", "kafka-clients-3.9.1", "kafka-4.1.1"),
    "MetaqBroker": ("metaq-server-1.4.6.2",),
    "MetaqMember": ("metaq-server-1.4.6.2",),
    "RocketMqLoopback": ("rocketmq-server-4.9.7", "rocketmq-server-5.5.0"),
    "RocketMqMember": ("rocketmq-client-4.9.8", "rocketmq-server-5.5.0"),
    "StreamsMember": ("kafka-streams-4.1.1",),
    "TrinoQueries": ("trino-431",),
}
# Compiled with each of them: how members talk.
_SHARED = ("Conversation",)
_CLASSES = "classes.jar"
_COMPILE_TIMEOUT_S = 300
# Fetched and compiled by the tests that take long, when they need them.
LATER = (
    *("kafka-3.9.1", "kafka-4.0.0", "kafka-4.4.0", "kafka-clients-3.7.1", "trino-431"),
    *("rocketmq-client-java-5.0.8", "rocketmq-proxy-5.5.0"),
)


@cache
def java() -> str:
    """Return the Java that the kit's programs run on, asked for once: asking starts one."""
    return str(find_java().java)


def kit_jars(name: str) -> list[Path]:
    """Return the jars of `ivy/NAME.xml`; fetch them if this machine has none yet."""
    return ivy.fetch(_HERE / "ivy" / f"{name}.xml", _HERE / "ivy" / f"{name}.sha256")


def class_path(name: str, program: str) -> str:
    """Return a class path of a set of jars with one of the kit's own programs in front: jars alone."""
    return f"{_compiled(name, program)}:{kit_jars(name)[0].parent}/*"


def compiled(name: str, program: str, sources: Sequence[Path], *, beside: str = "") -> Path:
    """Return the folder of a program's classes, compiled once for each set of jars and wording of its sources.

    A jar in it has the same: Java archives no classes that it reads from a folder.

    Args:
        beside: Of the jars of the set: what else is on the class path.
    """
    jars = kit_jars(name)[0].parent
    text = b"".join([*(source.read_bytes() for source in sources), f"{jars.name} {_CLASSES}".encode()])
    digest = hashlib.sha256(text).hexdigest()[:12]
    folder = ivy.cache_folder() / "classes" / f"{program}-{name}-{digest}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as unfinished:
        # --release 17: what the oldest Java that Spark runs on understands.
        subprocess.run(
            [find_java().javac, "-nowarn", "--release", "17", "-cp", f"{jars}/*:{beside}", "-d", unfinished, *sources],
            check=True,
            timeout=_COMPILE_TIMEOUT_S,
        )
        shutil.copytree(unfinished, f"{unfinished}.whole")
        with zipfile.ZipFile(Path(f"{unfinished}.whole") / _CLASSES, "w") as jar:
            for file in sorted(Path(unfinished).rglob("*.class")):
                jar.write(file, file.relative_to(unfinished))
        try:
            os.rename(f"{unfinished}.whole", folder)
        except OSError:
            # Another process was faster.
            shutil.rmtree(f"{unfinished}.whole", ignore_errors=True)
            if not folder.is_dir():
                raise
    return folder


def jar_of(name: str, texts: Mapping[str, str]) -> Path:
    """Return a jar of these texts by file name, made once."""
    digest = hashlib.sha256(repr(sorted(texts.items())).encode()).hexdigest()[:12]
    made = ivy.cache_folder() / "classes" / f"{name}-{digest}.jar"
    if not made.exists():
        made.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=made.parent) as folder:
            unfinished = Path(folder) / made.name
            with zipfile.ZipFile(unfinished, "w") as jar:
                for file, text in texts.items():
                    jar.writestr(file, text)
            # Java takes an archive only for the very file: that of who was faster stays.
            with contextlib.suppress(FileExistsError):
                os.link(unfinished, made)
    return made


def compiled_guard() -> Path:
    """Return the classes of `Guarded`, which needs no other jar."""
    return _compiled("s3proxy-4.1.0", "Guarded")


def _compiled(name: str, program: str) -> Path:
    return compiled(name, program, [JAVA / f"{class_name}.java" for class_name in (program, *_SHARED)]) / _CLASSES


def main() -> int:
    """Fetch and compile everything that the tests with brokers need."""
    names = sorted(file.stem for file in (_HERE / "ivy").glob("*.xml") if file.stem not in LATER)
    try:
        with ThreadPoolExecutor(max_workers=3) as pool:
            list(pool.map(kit_jars, names))
        for program, sets in _PROGRAMS.items():
            for name in set(sets).difference(LATER):
                _compiled(name, program)
    except SetupError as error:
        ivy.progress(f"error: {error}")
        return 2
    ivy.progress(f"brokers and clients for the tests are in {ivy.cache_folder()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
