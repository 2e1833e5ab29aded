"""Removal of input files that have been read: those of ports and control streams, which Spark leaves.

A file is removed when each query that reads its directory has committed the batch after the one that used it.
So a batch that is run again has all its files, and a query that stands still or continues later keeps them.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

from millstream.runtime.checkpoints.spark_checkpoint import SparkCheckpoint

EVERY_SECONDS = 2.0


class _Reader:
    """A query that reads a directory, and the files that it will not need again."""

    def __init__(self, spark: Path, directory: Path) -> None:
        self._spark = SparkCheckpoint(spark)
        self._places = {directory.absolute(), directory.resolve()}
        self._taken: dict[int, int] = {}
        self.done: set[str] = set()

    def update(self) -> None:
        # The last batch is excluded: Spark reads its files again after a restart. If a query reads a
        # directory twice, a file in a batch of one source is in the next batch of the other at the latest.
        for source, position in self._spark.positions(self._spark.committed - 1).items():
            files = self._spark.files(source, self._taken.get(source, -1), position)
            self.done |= {file.name for file in files if file.parent in self._places}
            self._taken[source] = position


class InputCleaner:
    """Cleans directories periodically, in a thread, from the first reader until `close`."""

    def __init__(self, every: float = EVERY_SECONDS) -> None:
        self._every = every
        self._readers: dict[Path, dict[Path, _Reader]] = {}
        self._kept: set[Path] = set()
        self._lock = threading.Lock()
        self._holds = 0
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, directory: Path, spark: Path) -> None:
        """Add a query that reads a directory, by its Spark checkpoint, before it starts."""
        with self._lock:
            self._readers.setdefault(directory, {}).setdefault(spark, _Reader(spark, directory))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="millstream-cleaning", daemon=True)
                self._thread.start()

    def drop(self, spark: Path) -> None:
        """Remove a query that will not continue."""
        with self._lock:
            for directory, readers in list(self._readers.items()):
                readers.pop(spark, None)
                if not readers:
                    del self._readers[directory]

    def leave(self, directory: Path) -> None:
        """Stop cleaning a directory that no running query reads."""
        with self._lock:
            self._readers.pop(directory, None)

    def keep(self, directory: Path) -> None:
        """Never clean a directory that a query outside this connection reads."""
        with self._lock:
            self._kept.add(directory)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Suspend cleaning while more readers are being added."""
        with self._lock:
            self._holds += 1
        try:
            yield
        finally:
            with self._lock:
                self._holds -= 1

    def clean(self) -> None:
        """Remove the files that all readers of a directory have finished with."""
        with self._lock:
            if self._holds:
                return
            for directory, readers in self._readers.items():
                # A temporary disk error must neither stop a query nor end cleaning.
                with contextlib.suppress(OSError, ValueError):
                    if directory not in self._kept:
                        _clean(directory, list(readers.values()))

    def close(self) -> None:
        self._closed.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._closed.wait(self._every):
            self.clean()


def _clean(directory: Path, readers: list[_Reader]) -> None:
    names = sorted(path.name for path in directory.iterdir() if not path.name.startswith("."))
    # The writers of the directory continue from the name and time of the last file.
    names = names[:-1]
    for reader in readers:
        if names:
            reader.update()
        names = [name for name in names if name in reader.done]
    for name in names:
        (directory / name).unlink(missing_ok=True)
        (directory / f".{name}.crc").unlink(missing_ok=True)
    for reader in readers:
        reader.done.difference_update(names)
