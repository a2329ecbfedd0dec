"""Shell: an archive of the classes that a local session's JVM loads, which saves a short job a third of its CPU time.

`python -m streaming.spark.class_archive` creates it next to the installed packages. Java accepts it only with the same
jars and the same Java, and starts without it if these have changed. Source: Java 17, `java` command, "Creating Dynamic
CDS Archive Files".
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

_SILENT = ("-Xlog:cds*=off", "-Xlog:class+path=off")
_FLEET = ("--duration", "60s", "--groups", "6")  # for the simulator: a job over it loads the classes that any job needs


def archive_file() -> Path:
    """Return the actual or future path of the archive."""
    return Path(sys.prefix) / "spark-classes.jsa"


def archive_options() -> tuple[str, ...]:
    """Return Java's options to start with the archive; none if there is no archive."""
    file = archive_file()
    return (f'"-XX:SharedArchiveFile={file}"', *_SILENT) if file.exists() else ()


def make_archive() -> None:
    """Run a small job, and archive the classes that it has loaded.

    Raises:
        OSError: The archive cannot be written.
        subprocess.CalledProcessError: The job failed.
    """
    file = archive_file()
    file.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=sys.prefix) as name:
        folder = Path(name)
        made = folder / file.name
        options = " ".join(["-XX:TieredStopAtLevel=1", f'\\"-XX:ArchiveClassesAtExit={made}\\"', *_SILENT])
        (folder / "archive.toml").write_text(f'[spark.conf]\n"spark.driver.extraJavaOptions" = "{options}"\n')
        for command in (
            ("simulate", "--out", name, *_FLEET),
            (
                *("run", "--once", "--flush", "--config", folder / "archive.toml"),
                *("--events", folder / "events", "--tables", folder / "tables", "--checkpoint", folder / "checkpoint"),
            ),
        ):
            monitor = Path(sys.executable).with_name("rebalance-monitor")
            subprocess.run([monitor, *command], check=True, capture_output=True, text=True, cwd=folder)
        made.replace(file)


def main() -> int:
    """Create the archive; a session also starts without it."""
    sys.stderr.write("archiving the classes of Spark's JVM: a minute, which later starts save\n")
    try:
        make_archive()
    except (OSError, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"not archived, Spark starts without: {error}\n{getattr(error, 'stderr', '')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
