"""Shell: storage locations: a folder of this machine, or a URI of a store."""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import TypeAlias

# A path is a folder of this machine; a text is the URI of a store.
Location: TypeAlias = Path | str

STORES = ("s3", "abfss", "gs", "hdfs")
# The environment variables of each store's users begin with these.
STORE_VARIABLES = ("AWS_", "AZURE_", "GOOGLE_", "HADOOP_")
_SUPPORTED = f"a folder, file, {', '.join(STORES)} and s3a are known"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?=/)")
# This also matches known schemes without slashes, because nobody wants a folder named s3:lake.
_STORE = re.compile(rf"({'|'.join(STORES)}|s3a|file):", re.IGNORECASE)
# Nobody names a folder here like this, and each of these texts would become one.
_MISTAKEN = (
    (re.compile(r"[A-Za-z]:[\\/]|\\\\"), f"is a path of Windows; {_SUPPORTED}"),
    (re.compile(r"~(/|$)"), "begins with ~, which is replaced by a shell and not here; write the whole path"),
    (re.compile(r"kafka:"), "names a Kafka topic: collect takes one as --out, run as --kafka-events"),
)
# The authority: the text between // and the next slash.
_AUTHORITIES = {
    "s3": (re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]+"), "bucket (letters, digits, . _ -): write s3://BUCKET/PATH"),
    "gs": (re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]+"), "bucket (letters, digits, . _ -): write gs://BUCKET/PATH"),
    "abfss": (
        re.compile(r"[A-Za-z0-9$][A-Za-z0-9-]*@[A-Za-z0-9.-]+"),
        "container and account: write abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH",
    ),
    "hdfs": (re.compile(r"[A-Za-z0-9._-]+(:[0-9]+)?"), "name node: write hdfs://HOST:PORT/PATH"),
}
_CATALOG = "catalog:"
_NAMES = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*){1,2}")


def location_of(value: object) -> Location:
    """Parse a path or URI; ``s3a`` is another name for ``s3``.

    Raises:
        ValueError: The text is neither; the message does not repeat it.

    Example:
        >>> location_of("s3a://lake/tables/")
        's3://lake/tables'
    """
    text = str(value)
    if not text.strip() or "\0" in text:
        raise ValueError("is not a folder; . is the folder in which the command runs")
    for pattern, problem in _MISTAKEN:
        if pattern.match(text):
            raise ValueError(problem)
    found = _SCHEME.match(text) or _STORE.match(text)
    if found is None:
        if "://" in text:
            raise ValueError(f"is neither a URI of a known scheme nor the name of a folder; {_SUPPORTED}")
        return Path(text)
    scheme, rest = found[1].lower(), text[found.end() :]
    if scheme == "file":
        return _local(rest)
    scheme = "s3" if scheme == "s3a" else scheme
    if scheme not in STORES:
        raise ValueError(f"has the scheme {scheme}; {_SUPPORTED}")
    if not rest.startswith("//"):
        raise ValueError(f"is not a URI: write {scheme}://, or ./{found[1]}: for a folder of this name")
    return _of_store(scheme, rest.removeprefix("//").rstrip("/"))


def _local(rest: str) -> Path:
    host, slash, path = rest.removeprefix("//").partition("/")
    if rest.startswith("//") and host not in ("", "localhost"):
        raise ValueError("names a host; write file:///PATH for a folder of this machine")
    if not rest.startswith("/") or not slash:
        raise ValueError("is not a URI: write file:///PATH")
    return Path("/" + path.lstrip("/"))


def _of_store(scheme: str, rest: str) -> str:
    authority, *names = rest.split("/")
    if scheme != "abfss" and "@" in authority:
        raise ValueError("holds a password or key; set the variables of the store instead (docs/stores.md)")
    pattern, wanted = _AUTHORITIES[scheme]
    if not pattern.fullmatch(authority):
        raise ValueError(f"names no {wanted}")
    if any(name in ("", ".", "..") for name in names) or re.search(r"[?#\x00-\x1f]", rest):
        raise ValueError("has a part that is not a name: empty, . or .., or with ? or #")
    return f"{scheme}://{rest}"


def without_key(text: str) -> str:
    """Return a location in a form that errors may show.

    Example:
        >>> without_key("s3://AKIA:secret@lake/t"), without_key("abfss://box@account.dfs.core.windows.net/t")
        ('s3://…@lake/t', 'abfss://box@account.dfs.core.windows.net/t')
    """
    return text if text.lower().startswith("abfss:") else re.sub(r"//[^/@]*@", "//…@", text)


def folder_of(value: object) -> Location:
    """Parse the location of a folder, where a schema name of a catalog is not allowed but may be given by mistake.

    Raises:
        ValueError: It is neither path nor URI, or looks like such a name and is no existing folder.
    """
    location = location_of(value)
    text = str(value)
    if isinstance(location, Path) and _NAMES.fullmatch(text) and not location.exists():
        raise ValueError(f"is like the name of a schema in a catalogue; for a folder of this name write ./{text}")
    return location


def tables_of(value: object) -> Location:
    """Parse a path or URI of tables, or a schema of Spark's catalog: two or three names with dots, without a slash.

    An existing folder is a folder, whatever its name.

    Raises:
        ValueError: The text is neither.

    Example:
        >>> tables_of("main.monitor"), tables_of("s3a://lake/tables"), str(tables_of("./main.monitor"))
        ('catalog:main.monitor', 's3://lake/tables', 'main.monitor')
    """
    text = str(value).removeprefix(_CATALOG)
    is_schema = _NAMES.fullmatch(text) and not Path(text).is_dir()
    return _CATALOG + text if is_schema else location_of(value)


def catalog_schema(location: Location) -> str:
    """Return the catalog schema that a location of tables names; empty if it is a folder or URI."""
    text = location if isinstance(location, str) else ""
    return text.removeprefix(_CATALOG) if text.startswith(_CATALOG) else ""


def absolute(location: Location) -> Location:
    """Return the absolute location, independent of the working folder of a command."""
    return location.absolute() if isinstance(location, Path) else location


def hand_on(options: Mapping[str, str], env: MutableMapping[str, str]) -> None:
    """Put options of stores where delta-rs and Hadoop look for them; existing variables take precedence."""
    for name, value in options.items():
        env.setdefault(name, value)
