"""Shell: a file or folder of a store, with those methods of ``pathlib.Path`` that the monitor uses.

Access is that of delta-rs: the same stores, variables and retries as for the tables. A put is atomic there: a file
appears whole, so it need not be written under another name and renamed.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache, total_ordering
from typing import TYPE_CHECKING, Any, NamedTuple

from streaming.settings.locations import STORE_VARIABLES
from streaming.stores.failure import store_error

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, FileSystem

# This file marks the folder itself: a store knows folders only by their content, and Spark refuses a missing one.
MARKER = ".keep"
# Readers of the present give up soon; processes that run for months do not. A file of a table may be large.
PATIENCE = {"max_retries": "2", "retry_timeout": "10s", "connect_timeout": "3s", "timeout": "10s"}
_TABLE_PATIENCE = {"max_retries": "5", "retry_timeout": "10s", "connect_timeout": "3s", "timeout": "15s"}
# One request reads this much.
_READ_BYTES = 1 << 20


def access_variables() -> dict[str, str]:
    """Return the variables of this process by which stores are accessed, as options for another process.

    HDFS variables cannot be options: its client reads them only from the environment.
    """
    names = tuple(prefix for prefix in STORE_VARIABLES if prefix != "HADOOP_")
    return {name: value for name, value in os.environ.items() if name.startswith(names)}


def table_patience(uri: str) -> dict[str, str] | None:
    """Return the options by which delta-rs gives up soon; None if the place is not on an object store."""
    return dict(_TABLE_PATIENCE) if "://" in uri and not uri.startswith("hdfs://") else None


class StoreStat(NamedTuple):
    """The metadata of an object."""

    st_size: int
    st_mode: int = stat.S_IFREG | stat.S_IRUSR | stat.S_IWUSR


@total_ordering
class StorePath:
    """A name in a store; the existence of the file or folder is checked when it is used.

    Args:
        uri: Without a slash at its end.
        options: Options of the access, in addition to the variables of the environment.

    Raises:
        OSError: In every method, if the store cannot be reached or refuses; ``strerror`` is one line.
    """

    __slots__ = ("_info", "_options", "uri")

    def __init__(self, uri: str, options: Mapping[str, str] | None = None, info: FileInfo | None = None) -> None:
        self.uri = uri
        self._options = options or {}
        self._info = info

    def __str__(self) -> str:
        return self.uri

    def __repr__(self) -> str:
        return f"StorePath({self.uri!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorePath) and self.uri == other.uri

    def __lt__(self, other: StorePath) -> bool:
        return self.uri < other.uri

    def __hash__(self) -> int:
        return hash(self.uri)

    def __truediv__(self, name: str) -> StorePath:
        return StorePath(f"{self.uri}/{name}", self._options)

    @property
    def root(self) -> str:
        """Return the scheme with bucket, container or name node."""
        scheme, _, rest = self.uri.partition("://")
        return f"{scheme}://{rest.partition('/')[0]}"

    @property
    def key(self) -> str:
        """Return the name within the root."""
        return self.uri[len(self.root) + 1 :]

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        return os.path.splitext(self.name)[1]

    @property
    def parent(self) -> StorePath:
        return StorePath(self.uri.rpartition("/")[0], self._options)

    def absolute(self) -> StorePath:
        return self

    def exists(self) -> bool:
        return bool(self._found().type.name != "NotFound")

    def is_dir(self) -> bool:
        return bool(self._found().type.name == "Directory")

    def stat(self) -> StoreStat:
        """Return the metadata; raise FileNotFoundError if it does not exist, IsADirectoryError for a folder."""
        info = self._info or self._found()
        if info.type.name == "NotFound":
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.uri)
        if info.type.name == "Directory":
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), self.uri)
        return StoreStat(info.size)

    def read_bytes(self) -> bytes:
        with store_error(self.uri):
            return bytes(self._access().open_input_file(self.key).read())

    def read_text(self) -> str:
        return self.read_bytes().decode()

    def open(self, mode: str = "rb") -> io.BufferedReader:  # noqa: ARG002 - only reading
        """Open a file for reading, piece by piece."""
        with store_error(self.uri):
            file = self._access().open_input_file(self.key)
        return io.BufferedReader(_StoredFile(file, self.uri), _READ_BYTES)

    def write_bytes(self, content: bytes) -> None:
        """Put a file, whole."""
        with store_error(self.uri):
            # The stream of delta-rs takes only bytes, so other buffers are converted.
            stream = self._access().open_output_stream(self.key, compression=None, buffer_size=len(content) + 1)
            stream.write(content)
            stream.close()

    def unlink(self, missing_ok: bool = False) -> None:
        with store_error(self.uri):
            try:
                self._access().delete_file(self.key)
            except FileNotFoundError:
                if not missing_ok:
                    raise

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:  # noqa: ARG002 - as of a path
        """Make the folder appear, by a file in it whose name begins with a dot."""
        if not self.exists():
            (self / MARKER).write_bytes(b"")

    def iterdir(self) -> Iterator[StorePath]:
        """Return the content of the folder; nothing if there is no such folder."""
        from pyarrow.fs import FileSelector

        with store_error(self.uri):
            found = self._access().get_file_info(FileSelector(self.key, allow_not_found=True))
        for info in sorted(found, key=lambda info: str(info.path)):
            # The marker that Hadoop or a console writes for a folder has the folder's name and a slash.
            if info.base_name and info.path.strip("/") != self.key:
                yield StorePath(f"{self.uri}/{info.base_name}", self._options, info)

    def glob(self, pattern: str) -> Iterator[StorePath]:
        """Return the entries of the folder with such a name."""
        return (path for path in self.iterdir() if fnmatchcase(path.name, pattern))

    def _found(self) -> FileInfo:
        with store_error(self.uri):
            return self._access().get_file_info([self.key])[0]

    def _access(self) -> FileSystem:
        own = {name: value for name, value in os.environ.items() if name.startswith(STORE_VARIABLES)}
        return _access(self.root, tuple(sorted(own.items())), tuple(sorted(self._options.items())))


class _StoredFile(io.RawIOBase):
    """An open file whose errors are those of a store."""

    def __init__(self, file: Any, uri: str) -> None:
        self._file, self._uri = file, uri

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with store_error(self._uri):
            found = self._file.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        with store_error(self._uri):
            return int(self._file.seek(offset, whence))


@lru_cache(maxsize=32)
def _access(
    root: str,
    env: tuple[tuple[str, str], ...],  # noqa: ARG001 - other credentials are another access
    options: tuple[tuple[str, str], ...],
) -> FileSystem:
    from deltalake.fs import DeltaStorageHandler
    from pyarrow.fs import PyFileSystem

    return PyFileSystem(DeltaStorageHandler(root, dict(options) or None))
