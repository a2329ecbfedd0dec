"""Shell: a job's lost input, kept until the query has received it, so that each loss is reported once.

`<checkpoint>/losses.json` holds the position up to which deletions were reported, and the marks that are not in the
control folder yet. A mark that is written there twice, after a crash, opens the same finding.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from streaming.machine.logs import logger
from streaming.spark.checkpoint import CheckpointError, ControlFolder
from streaming.stores.places import Place, write_whole
from udfs.model.losses import Loss

_VERSION = 1
_log = logger("job")


class _Memory(msgspec.Struct, kw_only=True):
    """The content of the file.

    Attributes:
        answered: Source -> its part (a writer, a partition) -> file or offset before which everything was read or
            reported.
        pending: Cluster and loss of marks that may not be written yet.
    """

    version: int = _VERSION
    answered: dict[str, dict[str, int]] = msgspec.field(default_factory=dict)
    pending: list[tuple[str, Loss]] = msgspec.field(default_factory=list)


class PendingLosses:
    """Reports a job's lost input by marks in its control folder.

    Raises:
        CheckpointError: The file is damaged.
    """

    def __init__(self, file: Place, control: ControlFolder) -> None:
        self._file = file
        self._control = control
        try:
            self._memory = msgspec.json.decode(file.read_bytes(), type=_Memory)
        except FileNotFoundError:
            self._memory = _Memory()
        except msgspec.DecodeError as error:
            raise CheckpointError(
                f"{file} cannot be read: {error}. Delete it: losses so far are not reported."
            ) from error
        self._write_pending()

    def answered(self, source: str) -> dict[str, int] | None:
        """Return how far each part of a source was read or reported lost; None if the source was never read."""
        return self._memory.answered.get(source)

    def report(self, source: str, answered: dict[str, int], losses: Iterable[tuple[str, Loss]] = ()) -> None:
        """Report losses of a source, and store how far its parts are now read or reported."""
        found = list(losses)
        if not found and self._memory.answered.get(source) == answered:
            return
        self._memory.answered[source] = answered
        self._memory.pending = found
        self._keep()
        self._write_pending()

    def _write_pending(self) -> None:
        if not self._memory.pending:
            return
        for cluster, loss in self._memory.pending:
            _log.error(f"events are missing: {loss.what}", cluster=cluster)
            self._control.mark("lost", {cluster: {"lost": msgspec.to_builtins(loss)}})
        self._memory.pending = []
        self._keep()

    def _keep(self) -> None:
        write_whole(self._file, msgspec.json.encode(self._memory))
